package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apicheck"
	"github.com/perdure/perdure/internal/fakeprovider"
)

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

// hub is an API over a hub in memory, with the log of the API. The hub has the orchestrations "hello" and "a/b" and the
// entity "sum".
type hub struct {
	*fakeprovider.Provider

	api http.Handler
	log *bytes.Buffer
}

func setup(t *testing.T) *hub {
	t.Helper()
	now := func() time.Time { return began }
	h := &hub{Provider: fakeprovider.New(now, "hello", "a/b", "@sum"), log: &bytes.Buffer{}}
	h.api = httpapi.New(client.New(h.Provider, client.WithClock(now)), admin.New(h.Provider, admin.WithClock(now)),
		httpapi.WithLogger(slogTo(h.log)), httpapi.WithClock(now))
	return h
}

func slogTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// callResponse is the response to a call, with the method and the route of the call.
type callResponse struct {
	*httptest.ResponseRecorder

	t            *testing.T
	method, path string
	head         bool
}

// call sends a request and compares the response with the OpenAPI document. The content type of a body is JSON unless
// the header has another one.
func (h *hub) call(t *testing.T, method, target, body string, header ...string) callResponse {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a := callResponse{ResponseRecorder: httptest.NewRecorder(), t: t, method: method}
	before := 0
	if h.log != nil {
		before = h.log.Len()
	}
	h.api.ServeHTTP(a, r)
	if a.path = r.Pattern; method == http.MethodHead {
		a.method, a.head = http.MethodGet, true
	}
	for _, wrong := range openAPI().Wrong(a.checked()) {
		t.Error(wrong)
	}
	var p struct {
		Code string `json:"code"`
	}
	if a.Code >= http.StatusBadRequest && !a.head {
		if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
			t.Error(err)
		}
	}
	if h.log != nil {
		wantAsInTable(t, &a, p.Code, h.log.String()[before:])
	}
	return a
}

// checked returns the response in the form that is compared with the document.
func (a callResponse) checked() *apicheck.Reply {
	return &apicheck.Reply{
		Method: a.method, Path: a.path, Head: a.head, Code: a.Code, Header: a.Header(), Body: a.Body.Bytes(),
	}
}

// openAPI returns the parsed OpenAPI document.
var openAPI = sync.OnceValue(func() *apicheck.Document {
	doc, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	d, err := apicheck.Parse(doc)
	if err != nil {
		panic(err)
	}
	return d
})

func (h *hub) start(t *testing.T, id string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"instanceId": id})
	if err != nil {
		t.Fatal(err)
	}
	h.call(t, http.MethodPost, "/v1/orchestrations/hello", string(body)).want(http.StatusAccepted)
}

func (a callResponse) want(status int) callResponse {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	return a
}

// wantBody compares the body without the newline at its end.
func (a callResponse) wantBody(want string) {
	a.t.Helper()
	if got := strings.TrimSpace(a.Body.String()); got != want {
		a.t.Errorf("body\n%s\nwant\n%s", got, want)
	}
}

// wantProblem checks the fields and the content type of a problem.
func (a callResponse) wantProblem(status int, code, field string) {
	a.t.Helper()
	a.want(status)
	var p struct {
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Code      string `json:"code"`
		Field     string `json:"field"`
		Retryable *bool  `json:"retryable"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		a.t.Fatalf("problem %s: %v", a.Body, err)
	}
	if p.Code != code || p.Field != field || p.Status != status {
		a.t.Errorf("problem %s, want status %d, code %s, field %q", a.Body, status, code, field)
	}
	if p.Type == "" || p.Title != http.StatusText(status) || p.Detail == "" || p.Retryable == nil {
		a.t.Errorf("problem %s is incomplete", a.Body)
	}
	if got := a.Header().Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("content type %s", got)
	}
}

func completed(output string) history.Event {
	return history.Event{
		Kind: history.OrchestrationCompleted, Time: began.Add(time.Second),
		Output: history.NewInlinePayload([]byte(output)),
	}
}

func failed(message string) history.Event {
	return history.Event{
		Kind: history.OrchestrationFailed, Time: began.Add(time.Second),
		Error: &history.Failure{Type: "OrderError", Message: message},
	}
}
