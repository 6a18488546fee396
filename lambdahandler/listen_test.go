package lambdahandler

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	loopbackHost  = "127.0.0.1:8080"
	reboundHost   = "evil.example:8080"
	evilOrigin    = "https://evil.example"
	trustedOrigin = "https://shop.example.com"
	instances     = "/v1/instances"
	cancelOne     = "/v1/instances/a/cancel"

	ok, forbidden, misdirected = http.StatusOK, http.StatusForbidden, http.StatusMisdirectedRequest
)

// listening returns the handler that a listener at an address serves. The API behind the handler is empty.
func listening(t *testing.T, at string, page bool, env map[string]string) http.Handler {
	t.Helper()
	e := &environment{getenv: func(name string) string { return env[name] }}
	var h http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	a := access{e.originGuard(), e.allowedHosts()}
	if page {
		h = withWebUI(h, a.origins)
	}
	if err := e.err(); err != nil {
		t.Fatal(err)
	}
	address, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	return withAccess(address, h, a)
}

// call is a request to a listener.
type call struct{ method, path, host, site, origin string }

func (c call) status(h http.Handler) int {
	r := httptest.NewRequest(c.method, c.path, http.NoBody)
	r.Host = c.host
	for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
		if value != "" {
			r.Header.Set(header, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// A browser on this machine can connect to loopback with the permissions of the API.
func TestListener_onLoopback_rejectsOtherHostsAndOtherOrigins(t *testing.T) {
	t.Parallel()
	for _, page := range []bool{false, true} {
		h := listening(t, loopbackHost, page, map[string]string{"PERDURE_UI_ORIGINS": trustedOrigin})
		for name, c := range map[string]struct {
			call

			want int
		}{
			"a change of another site": {
				call{post, cancelOne, loopbackHost, "cross-site", evilOrigin}, forbidden,
			},
			"a change of another origin": {call{post, cancelOne, loopbackHost, "", evilOrigin}, forbidden},
			"a change of another port": {
				call{remove, "/v1/instances/a", "localhost:8080", "same-site", "http://localhost:3000"}, forbidden,
			},
			"a change of a trusted origin": {call{post, cancelOne, loopbackHost, "cross-site", trustedOrigin}, ok},
			"a read of another site":       {call{get, instances, loopbackHost, "cross-site", ""}, forbidden},
			"a read of a trusted origin":   {call{get, instances, loopbackHost, "cross-site", trustedOrigin}, ok},
			"a change of the web UI": {
				call{post, cancelOne, loopbackHost, "same-origin", "http://127.0.0.1:8080"}, ok,
			},
			"a change of a program":      {call{post, cancelOne, loopbackHost, "", ""}, ok},
			"a read after DNS rebinding": {call{get, instances, reboundHost, "same-origin", ""}, misdirected},
			"a change after DNS rebinding": {
				call{post, cancelOne, reboundHost, "same-origin", "http://evil.example:8080"}, misdirected,
			},
			"the web UI after DNS rebinding":  {call{get, "/ui", reboundHost, "none", ""}, misdirected},
			"a health check by another host":  {call{get, "/v1/healthz", reboundHost, "", ""}, misdirected},
			"another port in the Host header": {call{get, instances, "127.0.0.1:9090", "", ""}, misdirected},
			"no host":                         {call{get, instances, "", "", ""}, misdirected},
			"a link to the web UI":            {call{get, "/ui", loopbackHost, "cross-site", ""}, ok},
		} {
			if got := c.status(h); got != c.want {
				t.Errorf("web UI %v, %s: got status %d, want %d", page, name, got, c.want)
			}
		}
	}
}

func TestListener_elsewhere_acceptsTheAllowedHosts(t *testing.T) {
	t.Parallel()
	h := listening(t, "0.0.0.0:8080", false, map[string]string{allowedHosts: "api.example.com, 10.0.3.7:8080"})
	for name, c := range map[string]struct {
		call

		want int
	}{
		"an allowed host":               {call{post, "/v1/jobs", "api.example.com", "", ""}, ok},
		"an allowed host with its port": {call{post, "/v1/jobs", "10.0.3.7:8080", "", ""}, ok},
		"loopback":                      {call{get, "/v1/jobs", "localhost:8080", "", ""}, ok},
		"another host":                  {call{get, "/v1/jobs", "evil.example", "", ""}, misdirected},
		"a health check":                {call{get, "/v1/healthz", "10.0.3.9:8080", "", ""}, ok},
		"a link from another site":      {call{get, "/v1/instances/a", "api.example.com", "cross-site", ""}, ok},
		"a change of another site": {
			call{post, "/v1/jobs", "api.example.com", "cross-site", evilOrigin}, forbidden,
		},
	} {
		if got := c.status(h); got != c.want {
			t.Errorf("%s: got status %d, want %d", name, got, c.want)
		}
	}
	all := listening(t, "0.0.0.0:8080", false, map[string]string{allowedHosts: "*"})
	if got := (call{get, "/v1/jobs", "any.example", "", ""}).status(all); got != http.StatusOK {
		t.Errorf("with *: got status %d", got)
	}
}

func TestListener_elsewhereWithoutAllowedHosts_doesNotStart(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                        allowedHosts + " is not set, and required because PERDURE_LISTEN is not on loopback",
		"https://api.example.com": allowedHosts + ` is invalid: "https://api.example.com" is not a host`,
	} {
		env := func(name string) string {
			switch name {
			case "AWS_LAMBDA_RUNTIME_API":
				return ""
			case "PERDURE_LISTEN":
				return "0.0.0.0:0"
			case allowedHosts:
				return value
			default:
				return apiEnvironment(name)
			}
		}
		f, err := NewAPI(t.Context(), WithEnvironment(env))
		if err == nil {
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // ends a listener that starts
			err = f.Serve(ctx)
			stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%q: got error %v", allowedHosts, value, err)
		}
	}
}
