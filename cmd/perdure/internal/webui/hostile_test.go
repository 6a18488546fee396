package webui

import (
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/originguard/guardtest"
)

func TestUI_hostileRequests_areRejected(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"the hub", "an endpoint"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			api := guardtest.NewAPI(t)
			h := api.Handler
			if through == "an endpoint" {
				endpoint := httptest.NewServer(api)
				defer endpoint.Close()
				var err error
				env := &cli.Env{Stderr: io.Discard, Stdout: io.Discard, Now: time.Now}
				if h, err = API(t.Context(), env, endpoint.URL); err != nil {
					t.Fatal(err)
				}
			}
			server := httptest.NewUnstartedServer(nil)
			at := server.Listener.Addr().(*net.TCPAddr)
			server.Config = newServer(h, at.Port)
			server.Start()
			defer server.Close()
			guardtest.Check(t, at.String(), api)
		})
	}
}
