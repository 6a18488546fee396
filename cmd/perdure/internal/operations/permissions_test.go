package operations

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// gateway is a transport that authorizes requests and passes them to an API. It counts the requests.
type gateway struct {
	// respond returns the status of a response of the gateway, or 0 to pass the request on.
	respond func(r *http.Request) int
	// change changes a request that is passed on.
	change func(r *http.Request)
	api    http.Handler
	log    bytes.Buffer // of the API

	mu       sync.Mutex
	requests map[string]int // by method and path
	changes  []int          // the API's statuses for requests that are no reads
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second) // in a bubble
	g.mu.Lock()
	g.requests[r.Method+" "+r.URL.Path]++
	g.mu.Unlock()
	w := httptest.NewRecorder()
	if status := g.respond(r); status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.WriteString(`{"message":"Forbidden"}`)
		return w.Result(), nil
	}
	r = r.Clone(r.Context())
	if g.change != nil {
		g.change(r)
	}
	g.api.ServeHTTP(w, r)
	if r.Method != http.MethodGet {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changes = append(g.changes, w.Code)
	}
	return w.Result(), nil
}

// passes is a gateway's decision that permits a request.
func passes(*http.Request) int { return 0 }

// through returns the permissions that a gateway in front of an API gives, by operation.
func through(t *testing.T, g *gateway) map[string]permission {
	t.Helper()
	p := fakeprovider.New(time.Now, "hello")
	g.requests = map[string]int{}
	if g.api == nil {
		g.api = httpapi.New(client.New(p), admin.New(p), httpapi.WithLogger(slog.New(slog.NewTextHandler(&g.log, nil))))
	}
	c, err := apiclient.Dial("https://api.example.com", client.WithHTTPClient(&http.Client{Transport: g}))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]permission{}
	for _, p := range readPermissions(t.Context(), c) {
		all[p.Operation] = p
	}
	for request, n := range g.requests {
		if n != 1 {
			t.Errorf("%d requests %s", n, request)
		}
	}
	if log := g.log.String(); strings.Contains(log, "operation.requested") {
		t.Errorf("the API accepted a change: %s", log)
	}
	for _, status := range g.changes {
		if status < http.StatusBadRequest || status >= http.StatusInternalServerError {
			t.Errorf("the API responded to a change with status %d", status)
		}
	}
	return all
}

func routed() (all []api.Operation) {
	for _, o := range api.Operations() {
		if o.Path != "" {
			all = append(all, o)
		}
	}
	return all
}

// Each operation is allowed or denied as the gateway decides, with one request for each, and four at a time.
func TestReadPermissions_gateway_decides(t *testing.T) {
	t.Parallel()
	isGet := func(o *api.Operation) bool { return o.Method == http.MethodGet }
	for name, test := range map[string]struct {
		denies func(o *api.Operation) bool
		status int
	}{
		"permits everything":           {func(*api.Operation) bool { return false }, 0},
		"denies everything":            {func(*api.Operation) bool { return true }, http.StatusForbidden},
		"denies everything to a token": {func(*api.Operation) bool { return true }, http.StatusUnauthorized},
		"denies changes":               {func(o *api.Operation) bool { return !isGet(o) }, http.StatusForbidden},
		"denies reads":                 {isGet, http.StatusForbidden},
		"denies operations on jobs": {
			func(o *api.Operation) bool { return strings.HasPrefix(o.Path, "/v1/jobs") }, http.StatusForbidden,
		},
		"denies deletions": {
			func(o *api.Operation) bool { return o.Method == http.MethodDelete }, http.StatusForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := through(t, &gateway{respond: func(r *http.Request) int {
					for _, o := range routed() {
						if o.Method == r.Method && fits(o.Path, r.URL.Path) && test.denies(&o) {
							return test.status
						}
					}
					return 0
				}})
				all := routed()
				for _, o := range all {
					is, isDenied := got[o.ID], test.denies(&o)
					want := allowed
					if isDenied {
						want = denied
					}
					if is.Allowed != want || is.Inferred == (isDenied || isRead(&o)) || is.Grant != o.Grant {
						t.Errorf("%s: got %+v, want %s", o.ID, is, want)
					}
				}
				rounds := (len(all) - 1 + maxProbes - 1) / maxProbes
				if took, want := time.Since(began), time.Duration(1+rounds)*time.Second; took != want {
					t.Errorf("%d requests of a second took %v, want %v", len(all), took, want)
				}
			})
		})
	}
}

// fits reports whether a path has the segments of a route.
func fits(route, path string) bool {
	a, b := strings.Split(route, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !strings.HasPrefix(a[i], "{") {
			return false
		}
	}
	return true
}

// Even if the unknown parameter were ignored, no request would change anything.
func TestReadPermissions_parameterIsIgnored_changesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{respond: passes, change: func(r *http.Request) {
			if r.Method != http.MethodGet {
				r.URL.RawQuery = ""
			}
		}}
		got := through(t, g)
		changing := 0
		for _, o := range routed() {
			if is := got[o.ID]; is.Allowed != allowed {
				t.Errorf("%s: got %+v", o.ID, is)
			}
			if o.Method != http.MethodGet {
				changing++
			}
		}
		if len(g.changes) != changing || changing == 0 {
			t.Errorf("the API received %d changes, want %d", len(g.changes), changing)
		}
	})
}

// A server that accepts every request is no API of a hub, so that it receives no changes.
func TestReadPermissions_otherService_receivesReadsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{respond: passes, api: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		})}
		got := through(t, g)
		for _, o := range routed() {
			if is := got[o.ID]; isRead(&o) != (is.Allowed == allowed) || !isRead(&o) && is.Reason == "" {
				t.Errorf("%s: got %+v", o.ID, is)
			}
		}
		if len(g.changes) > 0 {
			t.Errorf("the server received %d changes", len(g.changes))
		}
	})
}

// A gateway that throttles the first request leaves the permission for changes unknown, with that reason.
func TestReadPermissions_firstRequestIsThrottled_reasonIsItsFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := through(t, &gateway{respond: func(r *http.Request) int {
			if r.URL.Path == "/v1/healthz" {
				return http.StatusTooManyRequests
			}
			return 0
		}})
		is := got["purgeInstance"]
		if is.Allowed != unknown || !strings.Contains(is.Reason, "because getHealth failed: ") ||
			!strings.Contains(is.Reason, "429") {
			t.Errorf("got %+v", is)
		}
	})
}

// A response that is no decision of a gateway leaves the permission unknown, with the reason.
func TestReadPermissions_noDecision_isUnknown(t *testing.T) {
	t.Parallel()
	earlier := func(code string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			if r.URL.Path == "/v1/healthz" {
				_, _ = w.Write([]byte(`{"status":400,"code":"invalid_request","field":"perdure-whoami"}`))
				return
			}
			_, _ = w.Write([]byte(`{"status":404,"code":"` + code + `"}`))
		})
	}
	unavailable := func(r *http.Request) int {
		if r.URL.Path == "/v1/healthz" {
			return 0
		}
		return http.StatusTooManyRequests
	}
	for name, g := range map[string]*gateway{
		"throttled":          {respond: unavailable},
		"no such route":      {respond: passes, api: earlier(apiwire.CodeNoRoute)},
		"method not allowed": {respond: passes, api: earlier(apiwire.CodeMethod)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for id, is := range through(t, g) {
					if id != getHealth && (is.Allowed != unknown || is.Inferred || is.Reason == "") {
						t.Errorf("%s: got %+v", id, is)
					}
				}
			})
		})
	}
}
