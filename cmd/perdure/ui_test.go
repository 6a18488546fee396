package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// echoServer is an API that returns its request.
func echoServer() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "uri": r.RequestURI, "body": string(body), "header": r.Header,
		})
	})
}

// A signed request contains the session token, so the tool never sends it over plain HTTP.
func TestUI_endpointOverPlainHTTP_isRejected(t *testing.T) {
	t.Parallel()
	for _, api := range []string{
		"http://a1b2.execute-api.eu-west-1.amazonaws.com", "http://A1B2.Execute-Api.eu-west-1.AMAZONAWS.com.",
		"http://abc.lambda-url.eu-west-1.on.aws",
	} {
		setup(t).wantError(cli.CodeError, "--api must start with https://", "ui", "--api", api)
	}
}

// uiOf runs the command until stop is called, and returns the printed address.
func uiOf(t *testing.T, h *tool, args ...string) (address string, stop func()) {
	t.Helper()
	out, in := io.Pipe()
	env := &cli.Env{
		OpenHub: func(context.Context, string) (cli.Hub, error) { return cli.NewHub(h.Provider), nil },
		Getenv:  func(string) string { return "" }, Stdout: in, Stderr: io.Discard, Now: time.Now,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, env, append([]string{"ui"}, args...)); _ = in.Close() }()
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
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestUI_hub_servesAPIAndWebUI(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	address, stop := uiOf(t, h)
	if got := read(t, address+"/v1/instances?limit=5"); !strings.Contains(got, `"instanceId":"one"`) {
		t.Errorf("instances: %s", got)
	}
	if got := read(t, address); !strings.Contains(got, "<title>Instances") {
		t.Errorf("the root path leads to %.100s", got)
	}
	stop()
}

// The endpoint receives the requests of the web UI with unchanged IDs and without headers of the browser.
func TestUI_endpoint_receivesRequestsWithoutBrowserHeaders(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(echoServer())
	defer api.Close()
	address, stop := uiOf(t, setup(t), "--api", api.URL+"/v1/")
	defer stop()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/instances/~YS9i/events/a%20b?x=1",
		strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", "secret=1")
	r.Header.Set("Authorization", "Basic x")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct {
		Method string      `json:"method"`
		URI    string      `json:"uri"`
		Body   string      `json:"body"`
		Header http.Header `json:"header"`
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URI != "/v1/instances/~YS9i/events/a%20b?x=1" || got.Body != `{"a":1}` ||
		got.Header.Get("Cookie") != "" || got.Header.Get("Authorization") != "" {
		t.Errorf("%+v", got)
	}
	api.Close()
	if got := read(t, address+"/v1/instances"); !strings.Contains(got, `"code":"unavailable"`) {
		t.Errorf("an unreachable endpoint: %s", got)
	}
}

func TestUI_invalidArguments_areErrors(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "--api must be the URL", "ui", "--api", "a1b2c3d4")
	h.wantError(cli.CodeError, "--port must be 0 to 65535", "ui", "--port", "-1")
	h.wantError(cli.CodeError, "unexpected argument", "ui", "x")
}
