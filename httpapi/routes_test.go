package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apiwire"
)

func TestRoutes_unknownPath_isNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/", "/v1", "/v2/instances", "/v2/instances/a/b", "/v1/instances/", "/v1/orchestrations/", "/v1/jobs/",
		"/v1/healthz/a", "/v1/openapi.json/a/b", "/v1/../v1/healthz",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.call(t, http.MethodGet, path, "").wantProblem(http.StatusNotFound, "no_such_route", "")
			h.call(t, http.MethodPost, path, "{}").wantProblem(http.StatusNotFound, "no_such_route", "")
		})
	}
}

// In the resource */GET/v1/* of an IAM policy, the first * also matches POST/v1/entities. The ID of such a path must
// therefore be encoded.
func TestRoutes_pathMatchesResourceOfAnotherCall_isRejected(t *testing.T) {
	t.Parallel()
	for path, rejected := range map[string]bool{
		"/v1/entities/GET/v1/add": true, "/v1/entities/%47ET/v1/add": true, "/v1/entities/PUT/v1/add": true,
		"/v1/entities/GET/v1": false, "/v1/entities/~R0VU/v1/add": false, "/v1/entities/GET/k/add": false,
		"/v1/entities/sum/GET/v1": false, "/v1/entities/GETS/v1/add": false,
	} {
		synctest.Test(t, func(t *testing.T) { // a call waits for seconds
			a := setup(t).call(t, http.MethodPost, path, `{"input":1}`)
			if is := strings.Contains(a.Body.String(), "before v1"); is != rejected || rejected && a.Code != 400 {
				t.Errorf("%s: status %d %s, rejected: %v", path, a.Code, a.Body, rejected)
			}
		})
	}
	if got := apiwire.EscapeID(http.MethodGet); got != "~R0VU" {
		t.Errorf("GET is sent as %s", got)
	}
}

// An unknown path may contain an ID with slashes that a gateway has decoded. The code of the response is not that of a
// missing instance, and the detail has the encoding of the ID.
func TestRoutes_unknownPathWithID_explainsEncodingOfTheID(t *testing.T) {
	t.Parallel()
	for path, id := range map[string]string{
		"/v1/instances/a/b":                     "a/b",
		"/v1/instances/a/b/":                    "a/b/",
		"/v1/instances/one/":                    "one/",
		"/v1/instances//one":                    "/one",
		"/v1/instances/a/b/c/history":           "a/b/c",
		"/v1/instances/a/b/cancellations":       "a/b",
		"/v1/instances/a/b/events/go":           "a/b",
		"/v1/instances/a/events/go/on":          "go/on",
		"/v1/instances/a/b/activities/2/cancel": "a/b",
		"/v1/instances/%C3%BC/b":                "ü/b",
		"/v1/instances/a%2Fb/c":                 "a/b/c",
		"/v1/instances/one/rewind":              "one/rewind",
		"/v1/instances/one/activities":          "one/activities",
		"/v1/instances/one/activities/2":        "one/activities/2",
		"/v1/orchestrations/a/b":                "a/b",
		"/v1/jobs/a/b":                          "a/b",
		"/v1/jobs/a/b/cancel":                   "a/b",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := newRunningHub(t)
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				a := h.call(t, method, path, "")
				a.wantProblem(http.StatusNotFound, "no_such_route", "path")
				if want := "base64url without padding: ~" + base64.RawURLEncoding.EncodeToString([]byte(id)) +
					`"`; !strings.Contains(a.Body.String(), want) ||
					!strings.Contains(a.Body.String(), "openapi.json") {
					t.Errorf("%s %s lacks %s: %s", method, path, want, a.Body)
				}
			}
			if sent := h.Sent(); len(sent) > 0 {
				t.Errorf("sent %v", sent)
			}
		})
	}
	a := setup(t).call(t, http.MethodGet, "/v1/instances/"+strings.Repeat("a/", 2000), "")
	a.wantProblem(http.StatusNotFound, "no_such_route", "path")
	if a.Body.Len() > 500 {
		t.Errorf("the response has %d bytes", a.Body.Len())
	}
}

func TestRoutes_wrongMethod_returnsAllowedMethods(t *testing.T) {
	t.Parallel()
	for target, allow := range map[string]string{
		hello: "POST", inUse: "DELETE, GET, HEAD, PUT", "/v1/instances": "GET, HEAD", "/v1/healthz": "GET, HEAD",
	} {
		a := setup(t).call(t, http.MethodPatch, target, "{}")
		a.wantProblem(http.StatusMethodNotAllowed, "method_not_allowed", "")
		if got := a.Header().Get("Allow"); got != allow {
			t.Errorf("%s allows %s, want %s", target, got, allow)
		}
	}
}

func TestHead_anyGetRoute_returnsNoBody(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.start(t, "one")
	for target, status := range map[string]int{
		inUse: http.StatusOK, inUse + "/result": http.StatusAccepted, "/v1/instances/missing": http.StatusNotFound,
	} {
		if a := h.call(t, http.MethodHead, target, "").want(status); a.Body.Len() > 0 ||
			a.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %s, %v", target, a.Body, a.Header())
		}
	}
}

func TestHealth_returnsOK(t *testing.T) {
	t.Parallel()
	setup(t).call(t, http.MethodGet, "/v1/healthz", "").want(http.StatusOK).wantBody(`{"status":"ok"}`)
}

// A request of an adapter may have a nil Body. A request of a net/http server always has a Body.
func TestStart_nilBody_isABadRequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := callResponse{ResponseRecorder: httptest.NewRecorder(), t: t}
	h.api.ServeHTTP(a, r)
	a.wantProblem(http.StatusBadRequest, "invalid_request", "body")
}

func TestLog_requestWithSecrets_omitsThem(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, hello, `{"instanceId":"private","input":"secret-input"}`, "Idempotency-Key",
		"secret-key", "Authorization", "secret-token").want(http.StatusAccepted)
	h.call(t, http.MethodGet, "/v1/instances?cursor=secret-cursor", "")
	h.call(t, http.MethodPost, hello, `{"secret-field":1}`)
	log := h.log.String()
	if strings.Contains(log, "secret") || strings.Count(log, "private") != 1 ||
		!strings.Contains(log, `event=operation.requested operation=start instance=private requestedBy=client`) {
		t.Errorf("logged %s", log)
	}
	for _, want := range []string{"method=POST", "route=/v1/orchestrations/{name}", "status=202", "status=400"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
}

// If a handler panics, the response is a problem, and only the log has the stack.
func TestHandler_panic_isAnInternalProblem(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.api = httpapi.New(client.New(nil), admin.New(nil), httpapi.WithLogger(slogTo(h.log)))
	a := h.call(t, http.MethodGet, inUse, "")
	a.wantProblem(http.StatusInternalServerError, "internal", "")
	if strings.Contains(a.Body.String(), "goroutine") || !strings.Contains(h.log.String(), "goroutine") {
		t.Errorf("got %s\nlogged %s", a.Body, h.log)
	}
}

// Each reference has a component, and each component has a reference.
func TestOpenAPI_references_areResolvedAndUsed(t *testing.T) {
	t.Parallel()
	a := setup(t).call(t, http.MethodGet, "/v1/openapi.json", "").want(http.StatusOK)
	var doc struct {
		OpenAPI    string                                `json:"openapi"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("OpenAPI %q: %v", doc.OpenAPI, err)
	}
	used := map[string]bool{}
	for _, rest := range strings.Split(a.Body.String(), `"$ref": "`)[1:] {
		ref, _, _ := strings.Cut(rest, `"`)
		used[ref] = true
		kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
		if doc.Components[kind][name] == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	for kind, components := range doc.Components {
		if kind == "securitySchemes" { // by name, without a reference
			continue
		}
		for name := range components {
			if ref := "#/components/" + kind + "/" + name; !used[ref] {
				t.Errorf("no reference to %s", ref)
			}
		}
	}
}
