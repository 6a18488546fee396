package lambdahandler

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const loopbackHost = "127.0.0.1:8080"

// listening returns an API without content as a listener at an address serves it, with an environment.
func listening(t *testing.T, at string, page bool, env map[string]string) http.Handler {
	t.Helper()
	e := &environment{getenv: func(name string) string { return env[name] }}
	var h http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	a := access{e.pageGuard(), e.allowedHosts()}
	if page {
		h = withPage(h, a.origins)
	}
	if err := e.err(); err != nil {
		t.Fatal(err)
	}
	address, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	return overHTTP(address, h, a)
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

// A browser on this machine can connect to loopback, with the rights of the API.
func TestListener_onLoopback_rejectsOtherHostsAndOtherOrigins(t *testing.T) {
	t.Parallel()
	const cancel = "/v1/instances/a/cancel"
	for _, page := range []bool{false, true} {
		h := listening(t, loopbackHost, page, map[string]string{"PERDURE_UI_ORIGINS": "https://shop.example.com"})
		for name, c := range map[string]struct {
			call

			want int
		}{
			"a change of another site":        {call{http.MethodPost, cancel, loopbackHost, "cross-site", "https://evil.example"}, http.StatusForbidden},
			"a change of another origin":      {call{http.MethodPost, cancel, loopbackHost, "", "https://evil.example"}, http.StatusForbidden},
			"a change of another port":        {call{http.MethodDelete, "/v1/instances/a", "localhost:8080", "same-site", "http://localhost:3000"}, http.StatusForbidden},
			"a change of a trusted origin":    {call{http.MethodPost, cancel, loopbackHost, "cross-site", "https://shop.example.com"}, http.StatusOK},
			"a read of another site":          {call{http.MethodGet, "/v1/instances", loopbackHost, "cross-site", ""}, http.StatusForbidden},
			"a read of a trusted origin":      {call{http.MethodGet, "/v1/instances", loopbackHost, "cross-site", "https://shop.example.com"}, http.StatusOK},
			"a change of the web UI":          {call{http.MethodPost, cancel, loopbackHost, "same-origin", "http://127.0.0.1:8080"}, http.StatusOK},
			"a change of a program":           {call{http.MethodPost, cancel, loopbackHost, "", ""}, http.StatusOK},
			"a read after DNS rebinding":      {call{http.MethodGet, "/v1/instances", "evil.example:8080", "same-origin", ""}, http.StatusMisdirectedRequest},
			"a change after DNS rebinding":    {call{http.MethodPost, cancel, "evil.example:8080", "same-origin", "http://evil.example:8080"}, http.StatusMisdirectedRequest},
			"the web UI after DNS rebinding":  {call{http.MethodGet, "/ui", "evil.example:8080", "none", ""}, http.StatusMisdirectedRequest},
			"a health check by another host":  {call{http.MethodGet, "/v1/healthz", "evil.example:8080", "", ""}, http.StatusMisdirectedRequest},
			"another port in the Host header": {call{http.MethodGet, "/v1/instances", "127.0.0.1:9090", "", ""}, http.StatusMisdirectedRequest},
			"no host":                         {call{http.MethodGet, "/v1/instances", "", "", ""}, http.StatusMisdirectedRequest},
			"a link to the web UI":            {call{http.MethodGet, "/ui", loopbackHost, "cross-site", ""}, http.StatusOK},
		} {
			if got := c.status(h); got != c.want {
				t.Errorf("web UI %v, %s: status %d, want %d", page, name, got, c.want)
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
		"an allowed host":               {call{http.MethodPost, "/v1/jobs", "api.example.com", "", ""}, http.StatusOK},
		"an allowed host with its port": {call{http.MethodPost, "/v1/jobs", "10.0.3.7:8080", "", ""}, http.StatusOK},
		"loopback":                      {call{http.MethodGet, "/v1/jobs", "localhost:8080", "", ""}, http.StatusOK},
		"another host":                  {call{http.MethodGet, "/v1/jobs", "evil.example", "", ""}, http.StatusMisdirectedRequest},
		"a health check":                {call{http.MethodGet, "/v1/healthz", "10.0.3.9:8080", "", ""}, http.StatusOK},
		"a link from another site":      {call{http.MethodGet, "/v1/instances/a", "api.example.com", "cross-site", ""}, http.StatusOK},
		"a change of another site":      {call{http.MethodPost, "/v1/jobs", "api.example.com", "cross-site", "https://evil.example"}, http.StatusForbidden},
	} {
		if got := c.status(h); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
	all := listening(t, "0.0.0.0:8080", false, map[string]string{allowedHosts: "*"})
	if got := (call{http.MethodGet, "/v1/jobs", "any.example", "", ""}).status(all); got != http.StatusOK {
		t.Errorf("with *: status %d", got)
	}
}

func TestListener_elsewhereWithoutAllowedHosts_doesNotStart(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                        allowedHosts + " is required where PERDURE_LISTEN is not on loopback",
		"https://api.example.com": allowedHosts + ` is wrong: "https://api.example.com" is not a host`,
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
			err = f.Serve(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%q: %v", allowedHosts, value, err)
		}
	}
}
