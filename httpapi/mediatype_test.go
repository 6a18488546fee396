package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// operationsWithBody returns "METHOD path" of every operation of the OpenAPI document that reads a body.
func operationsWithBody(t *testing.T) (all []string) {
	t.Helper()
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody json.RawMessage `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, operation := range methods {
			if operation.RequestBody != nil {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("the document has %d operations with a body", len(all))
	}
	return all
}

// A browser sends a Blob without a type to another origin without a preflight request.
func TestBody_withoutJSONContentType_isUnsupportedMediaType(t *testing.T) {
	t.Parallel()
	parameters := strings.NewReplacer(
		"{name}", "hello", "{id}", "waiting", "{event}", "e", "{entity}", "sum", "{key}", "k", "{operation}", "add",
		"{activityId}", "2", "{scheduleId}", "s", "{queue}", "default")
	types := map[string][]string{
		"no type": nil, "an empty type": {""}, "plain text": {"text/plain"},
		"plain text that mentions JSON": {"text/plain; application/json"},
		"a form":                        {"application/x-www-form-urlencoded"},
		"two types":                     {"application/json", "text/plain"},
		"Latin-1":                       {"application/json; charset=latin1"},
	}
	h := newRunningHub(t) // one hub for all requests, because none of them changes it
	for _, operation := range operationsWithBody(t) {
		method, path, _ := strings.Cut(parameters.Replace(operation), " ")
		for name, values := range types {
			for _, length := range []int64{2, -1} { // -1 is the length of a chunked body
				r := httptest.NewRequest(method, path, strings.NewReader("{}"))
				r.ContentLength = length
				if values != nil {
					r.Header["Content-Type"] = values
				}
				w := httptest.NewRecorder()
				h.api.ServeHTTP(w, r)
				code := `"code":"unsupported_media_type"`
				if w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), code) {
					t.Errorf("%s with %s, length %d: status %d, %s", operation, name, length, w.Code, w.Body)
				}
			}
		}
	}
}

// A request without a body needs no content type, even if the request is chunked.
func TestEmptyBody_withoutContentType_isAccepted(t *testing.T) {
	t.Parallel()
	for _, path := range []string{cancel, inUse + "/terminate", inUse + "/events/e", inUse + "/pause"} {
		for _, length := range []int64{0, -1} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(""))
			r.ContentLength = length
			w := httptest.NewRecorder()
			if newRunningHub(t).api.ServeHTTP(w, r); w.Code != http.StatusAccepted {
				t.Errorf("%s, length %d: status %d, %s", path, length, w.Code, w.Body)
			}
		}
	}
}
