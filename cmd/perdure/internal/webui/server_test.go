package webui

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// echo is an API that returns its request.
func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "uri": r.RequestURI, "body": string(body), "header": r.Header,
		})
	})
}

// The server rejects requests of other origins and requests with other host names.
func TestHandler_otherOriginsAndHosts_areRejected(t *testing.T) {
	t.Parallel()
	h := newHandler(echo(), 8090)
	for name, c := range map[string]struct {
		method, host, path string
		header             map[string]string
		want               int
	}{
		"web UI":    {http.MethodGet, "127.0.0.1:8090", "/ui?status=Failed", nil, http.StatusOK},
		"root path": {http.MethodGet, "localhost:8090", "/", nil, http.StatusFound},
		"API read": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/~YS9i?pending=false", nil, http.StatusOK,
		},
		"API change": {
			http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel",
			map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8090"},
			http.StatusOK,
		},
		"change by a program": {http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel", nil, http.StatusOK},
		"change by a page of another site": {
			http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel",
			map[string]string{"Sec-Fetch-Site": "cross-site"},
			http.StatusForbidden,
		},
		"change by a page of another port": {
			http.MethodDelete, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Origin": "http://127.0.0.1:3000"},
			http.StatusForbidden,
		},
		"read by a page of another site": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
			http.StatusForbidden,
		},
		"read by a page of the same site": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Sec-Fetch-Site": "same-site"},
			http.StatusForbidden,
		},
		"read with another origin": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Origin": "http://localhost:8090"},
			http.StatusForbidden,
		},
		"address entered by the user": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Sec-Fetch-Site": "none"},
			http.StatusOK,
		},
		"protocol upgrade": {
			http.MethodGet, "127.0.0.1:8090", "/v1/instances/a",
			map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"},
			http.StatusForbidden,
		},
		"link to the web UI": {
			http.MethodGet, "127.0.0.1:8090", "/ui",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
			http.StatusOK,
		},
		"rebound host name": {
			http.MethodGet, "evil.example:8090", "/v1/instances", nil, http.StatusMisdirectedRequest,
		},
		"host name with another port": {
			http.MethodGet, "127.0.0.1:80", "/v1/instances", nil, http.StatusMisdirectedRequest,
		},
		"unknown path":         {http.MethodGet, "127.0.0.1:8090", "/v2/instances", nil, http.StatusNotFound},
		"change of the web UI": {http.MethodPost, "127.0.0.1:8090", "/ui", nil, http.StatusMethodNotAllowed},
	} {
		r := httptest.NewRequest(c.method, c.path, http.NoBody)
		r.Host = c.host
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
	}
}

// A response of the endpoint cannot allow other origins, set cookies, run code, or be cached for the web UI.
func TestHandler_unsafeHeadersOfEndpoint_areReplaced(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "Set-Cookie": "a=b",
			"Content-Type":  "text/html",
			"Cache-Control": "public", "Content-Security-Policy": "default-src *",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	}))
	defer api.Close()
	endpoint, err := API(t.Context(), &cli.Env{Stderr: io.Discard, Stdout: io.Discard, Now: time.Now}, api.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/instances", http.NoBody)
	r.Host = "127.0.0.1:8090"
	w := httptest.NewRecorder()
	newHandler(endpoint, 8090).ServeHTTP(w, r)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "", "Set-Cookie": "",
		"Content-Type": "text/html", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Cross-Origin-Resource-Policy": "same-origin",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := strings.Join(w.Header().Values(name), ", "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
