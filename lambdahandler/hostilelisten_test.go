package lambdahandler

import (
	"context"
	"net"
	"testing"

	"github.com/perdure/perdure/internal/originguard/guardtest"
)

func TestListener_hostileRequests_areRejected(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]bool{"API": false, "API with web UI": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := guardtest.NewAPI(t)
			e := &environment{getenv: func(string) string { return "" }}
			a := access{e.originGuard(), e.allowedHosts()}
			h := api.Handler
			if page {
				h = withWebUI(h, a.origins)
			}
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- serveHTTP(ctx, l, withAccess(l.Addr().(*net.TCPAddr), h, a)) }()
			guardtest.Check(t, l.Addr().String(), api)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
