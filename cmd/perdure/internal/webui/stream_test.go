package webui

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// The server passes each event of a stream on as it arrives, and a reader that disconnects ends the request.
func TestHandler_stream_isNotBuffered(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"the hub", "an endpoint"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			proceed, ended := make(chan struct{}), make(chan struct{})
			var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				w.Header().Set("Content-Type", "text/event-stream")
				for range 2 {
					_, _ = io.WriteString(w, "id: "+r.Header.Get("Last-Event-ID")+"\n\n")
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
					select {
					case <-proceed:
					case <-r.Context().Done():
						return
					}
				}
				<-r.Context().Done()
			})
			if through == "an endpoint" {
				endpoint := httptest.NewServer(h)
				defer endpoint.Close()
				var err error
				env := &cli.Env{Stderr: io.Discard, Stdout: io.Discard, Now: time.Now}
				if h, err = API(t.Context(), env, endpoint.URL); err != nil {
					t.Fatal(err)
				}
			}
			server := httptest.NewUnstartedServer(nil)
			server.Config = newServer(h, server.Listener.Addr().(*net.TCPAddr).Port)
			server.Start()
			defer server.Close()

			ctx, disconnect := context.WithCancel(t.Context())
			defer disconnect()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/instances/a/events/stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Last-Event-ID", "x1.7")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			lines := bufio.NewReader(response.Body)
			for range 2 { // the API waits until each event was read
				for _, want := range []string{"id: x1.7\n", "\n"} {
					if line, err := lines.ReadString('\n'); line != want || err != nil {
						t.Fatalf("read %q, %v", line, err)
					}
				}
				proceed <- struct{}{}
			}
			disconnect()
			<-ended
		})
	}
}
