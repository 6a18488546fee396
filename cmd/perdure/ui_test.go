package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
)

// echo is an API that answers with what it was asked.
func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "uri": r.RequestURI, "body": string(body), "header": r.Header})
	})
}

// A page of another origin, and another name of this machine, reach nothing.
func TestUIServesItsOwnPageAlone(t *testing.T) {
	t.Parallel()
	h := uiHandler(echo(), 8090)
	for name, c := range map[string]struct {
		method, host, path string
		header             map[string]string
		want               int
	}{
		"the page":                {http.MethodGet, "127.0.0.1:8090", "/ui?status=Failed", nil, http.StatusOK},
		"the front":               {http.MethodGet, "localhost:8090", "/", nil, http.StatusFound},
		"a call":                  {http.MethodGet, "127.0.0.1:8090", "/v1/instances/~YS9i?pending=false", nil, http.StatusOK},
		"a change":                {http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8090"}, http.StatusOK},
		"a change of a program":   {http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel", nil, http.StatusOK},
		"a change of a page":      {http.MethodPost, "127.0.0.1:8090", "/v1/instances/a/cancel", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"of a neighbour":          {http.MethodDelete, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Origin": "http://127.0.0.1:3000"}, http.StatusForbidden},
		"a read of a page":        {http.MethodGet, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, http.StatusForbidden},
		"of one on this machine":  {http.MethodGet, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"with another's origin":   {http.MethodGet, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Origin": "http://localhost:8090"}, http.StatusForbidden},
		"a typed address":         {http.MethodGet, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Sec-Fetch-Site": "none"}, http.StatusOK},
		"an upgrade":              {http.MethodGet, "127.0.0.1:8090", "/v1/instances/a", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, http.StatusForbidden},
		"a link to the page":      {http.MethodGet, "127.0.0.1:8090", "/ui", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, http.StatusOK},
		"by a rebound name":       {http.MethodGet, "evil.example:8090", "/v1/instances", nil, http.StatusMisdirectedRequest},
		"by another port's name":  {http.MethodGet, "127.0.0.1:80", "/v1/instances", nil, http.StatusMisdirectedRequest},
		"what is not there":       {http.MethodGet, "127.0.0.1:8090", "/v2/instances", nil, http.StatusNotFound},
		"the page is not changed": {http.MethodPost, "127.0.0.1:8090", "/ui", nil, http.StatusMethodNotAllowed},
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

// What an endpoint answers does nothing in the origin of the page: it opens no origin, sets no cookie, and is never run or kept.
func TestUIAnswersDoNothingInTheOriginOfThePage(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "Set-Cookie": "a=b", "Content-Type": "text/html",
			"Cache-Control": "public", "Content-Security-Policy": "default-src *",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	}))
	defer api.Close()
	endpoint, err := apiFor(t.Context(), &command{err: io.Discard, out: io.Discard, now: time.Now}, api.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/instances", http.NoBody)
	r.Host = "127.0.0.1:8090"
	w := httptest.NewRecorder()
	uiHandler(endpoint, 8090).ServeHTTP(w, r)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "", "Set-Cookie": "", "Content-Type": "text/html", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
	} {
		if got := strings.Join(w.Header().Values(name), ", "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A signed request carries the token of the session: it never goes in the clear.
func TestUISignsNothingInTheClear(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"http://a1b2.execute-api.eu-west-1.amazonaws.com", "http://A1B2.Execute-Api.eu-west-1.AMAZONAWS.com.", "http://abc.lambda-url.eu-west-1.on.aws"} {
		setup(t).wantError(exitError, "--api must start with https://", "ui", "--api", api)
	}
}

// uiOf runs the verb until the test ends, and returns the address that it prints.
func uiOf(t *testing.T, h *tool, args ...string) (address string, stop func()) {
	t.Helper()
	out, in := io.Pipe()
	c := &command{
		open:   func(context.Context, string) (hub, error) { return newHub(h.Provider), nil },
		getenv: func(string) string { return "" }, out: in, err: io.Discard, now: time.Now,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- c.run(ctx, append([]string{"ui"}, args...)); _ = in.Close() }()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSpace(string(line[:n])), "/ui"), func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

func read(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestUIShowsTheHub(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	address, stop := uiOf(t, h)
	if got := read(t, address+"/v1/instances?limit=5"); !strings.Contains(got, `"instanceId":"one"`) {
		t.Errorf("instances: %s", got)
	}
	if got := read(t, address); !strings.Contains(got, "<title>Instances") {
		t.Errorf("the front leads to %.100s", got)
	}
	stop()
}

// The endpoint is sent what the page asks for, ids as they are, and nothing of the browser's.
func TestUIGoesThroughAnEndpoint(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(echo())
	defer api.Close()
	address, stop := uiOf(t, setup(t), "--api", api.URL+"/v1/")
	defer stop()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/instances/~YS9i/events/a%20b?x=1", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", "secret=1")
	r.Header.Set("Authorization", "Basic x")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Method string      `json:"method"`
		URI    string      `json:"uri"`
		Body   string      `json:"body"`
		Header http.Header `json:"header"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URI != "/v1/instances/~YS9i/events/a%20b?x=1" || got.Body != `{"a":1}` || got.Header.Get("Cookie") != "" || got.Header.Get("Authorization") != "" {
		t.Errorf("%+v", got)
	}
	api.Close()
	if got := read(t, address+"/v1/instances"); !strings.Contains(got, `"code":"unavailable"`) {
		t.Errorf("an endpoint that is gone: %s", got)
	}
}

func TestUIRefuses(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(exitError, "--api must be the URL", "ui", "--api", "a1b2c3d4")
	h.wantError(exitError, "--port must be 0 to 65535", "ui", "--port", "-1")
	h.wantError(exitError, "unexpected argument", "ui", "x")
}

func TestWhatRequestsAreSignedFor(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"a1b2.execute-api.eu-west-1.amazonaws.com": "execute-api eu-west-1", "a1b2.execute-api.cn-north-1.amazonaws.com.cn": "execute-api cn-north-1",
		"abc.lambda-url.us-east-1.on.aws": "lambda us-east-1", "localhost": " ", "127.0.0.1": " ", "execute-api.example.com": " ", "a.execute-api.eu-west-1.example.com": " ",
		"s3.eu-west-1.amazonaws.com": " ", "api.example.com": " ",
	} {
		if service, region := serviceOf(host); service+" "+region != want {
			t.Errorf("%s: %s %s, want %s", host, service, region, want)
		}
	}
}

func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(echo())
	defer api.Close()
	to, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{
		credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"), service: "execute-api", region: "eu-west-1", next: http.DefaultTransport,
		now: func() time.Time { return time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC) },
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.String()+"/v1/jobs", strings.NewReader(`{"operation":"purge"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Body   string      `json:"body"`
		Header http.Header `json:"header"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if auth := got.Header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKID/20260701/eu-west-1/execute-api/aws4_request") || got.Header.Get("X-Amz-Security-Token") != "session" || got.Body != `{"operation":"purge"}` {
		t.Errorf("%+v", got)
	}
}
