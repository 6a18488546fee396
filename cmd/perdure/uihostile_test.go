package main

import (
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

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
				c := &command{err: io.Discard, out: io.Discard, now: time.Now}
				if h, err = apiFor(t.Context(), c, endpoint.URL); err != nil {
					t.Fatal(err)
				}
			}
			server := httptest.NewUnstartedServer(nil)
			at := server.Listener.Addr().(*net.TCPAddr)
			server.Config = newUIServer(h, at.Port)
			server.Start()
			defer server.Close()
			guardtest.Check(t, at.String(), api)
		})
	}
}
