package lambdahandler

import (
	"context"
	"net"
	"net/http"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/ui"
)

// defaultListen is a loopback address, because no gateway authenticates callers outside Lambda.
const defaultListen = "127.0.0.1:8080"

// access limits the callers of a listening API.
type access struct {
	origins *http.CrossOriginProtection // origins of web pages
	hosts   originguard.Hosts           // host names of the API
}

// listen serves the API over HTTP until ctx ends.
func (b *binary) listen(ctx context.Context, p *dynamo.Provider, h http.Handler, a access) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", b.env.optional("PERDURE_LISTEN", defaultListen))
	if err != nil {
		b.env.failf("PERDURE_LISTEN", "cannot be used: %v", err)
		return b.env.err()
	}
	at := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // of a TCP listener
	if !at.IP.IsLoopback() && a.hosts.Empty() {
		_ = l.Close() // the listener has no connections
		b.env.failf(allowedHosts, "is not set, and required because PERDURE_LISTEN is not on loopback; "+
			"list the hosts that callers use, such as api.example.com,10.0.3.7:8080, or * for every host")
		return b.env.err()
	}
	url := "http://" + l.Addr().String() + "/v1"
	b.log.InfoContext(ctx, "serving the HTTP API", "event", logevent.APIServing, "hub", p.Config().Name, "url", url)
	b.logStop(serveHTTP(ctx, l, withAccess(at, h, a)))
	return nil
}

// withAccess returns the API for clients that connect to an address. Other machines cannot connect to loopback, but web
// pages in browsers of this machine can. On loopback, pages of other origins may therefore not read, but they may link
// to the web UI.
func withAccess(at *net.TCPAddr, h http.Handler, a access) http.Handler {
	const fix = "add the host to " + allowedHosts + " if callers use it"
	h = a.origins.Handler(h)
	hosts := originguard.ForAddress(at).Join(a.hosts)
	if at.IP.IsLoopback() {
		return hosts.Handler(onPath(ui.Path, h, originguard.AllMethods(a.origins, h)), fix)
	}
	// health checks of load balancers and orchestrators send the address of the process as the host
	return onPath("/v1/healthz", h, hosts.Handler(h, fix))
}

// onPath passes requests for a path to h, and all others to other. A ServeMux would clean API paths that contain IDs.
func onPath(path string, h, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			h.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}
