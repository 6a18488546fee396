package localcloud_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/originguard/guardtest"
)

const (
	apiHost = "a1b2.execute-api.us-east-1.amazonaws.com"
	// serveProxy serves the proxy of argv[1] for the API's host argv[2], prints its address, and ends with standard input.
	serveProxy = `
import sys
import proxy
listener = proxy.listen(0)
proxy.serve(listener, sys.argv[1], sys.argv[2])
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
sys.stdin.read()`
)

// startProxy starts the signing proxy of make run in front of a handler that stands for the local cloud, and returns its address.
func startProxy(t *testing.T, cloud http.Handler) (address string) {
	t.Helper()
	upstream := httptest.NewServer(cloud)
	t.Cleanup(upstream.Close)
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute) // it is stopped by a cleanup of the test
	t.Cleanup(stop)
	const folder = "../../localstack"
	install := exec.CommandContext(ctx, "python3", "venv_python.py", "ministack")
	install.Dir = folder
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := exec.CommandContext(ctx, ".venv/bin/python", "-c", serveProxy, upstream.URL, apiHost)
	p.Dir = folder
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	p.Stderr = &said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := p.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("the proxy ended with %v: %s", err, &said)
		}
	})
	if address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// The proxy signs for everybody who can connect, and the browsers of this machine can.
func TestProxy_hostileRequests_areRejected(t *testing.T) {
	t.Parallel()
	api := guardtest.NewAPI(t)
	guardtest.Check(t, startProxy(t, api), api)
}

// exchange sends a request through the proxy, and returns what the API received and what the caller did.
func exchange(t *testing.T, answer http.HandlerFunc, method, target, body string, header http.Header) (received *http.Request, sent string, got *http.Response) {
	t.Helper()
	address := startProxy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received, sent = r, string(b)
		answer(w, r)
	}))
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+target, io.MultiReader(strings.NewReader(body))) // chunked
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if header == nil {
		r.Header = http.Header{}
	}
	got, err = http.DefaultTransport.RoundTrip(r) // which follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { got.Body.Close() })
	return received, sent, got
}

func TestProxy_request_arrivesSignedAndUnchanged(t *testing.T) {
	t.Parallel()
	const target = "/v1/instances/~YS9i/events/a%20b%2Fc%C3%A9;v=1?x=%2F&y=a+b"
	r, body, got := exchange(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/v1/elsewhere?a=b")
		w.Header().Add("Link", "<a>")
		w.Header().Add("Link", "<b>")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, "moved")
	}, http.MethodPatch, target, `{"a":1}`, http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Idempotency-Key": {"k-1"}, "Cookie": {"secret=1"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Connection": {"X-Hop"}, "X-Hop": {"1"},
	})
	if r.RequestURI != target || r.Method != http.MethodPatch || r.Host != apiHost || body != `{"a":1}` || r.ContentLength != 7 {
		t.Errorf("%s %s of %s, length %d: %s", r.Method, r.RequestURI, r.Host, r.ContentLength, body)
	}
	if auth := r.Header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=test/") || !strings.Contains(auth, "/us-east-1/execute-api/aws4_request") {
		t.Errorf("Authorization: %s", auth)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": "k-1", "Cookie": "", "X-Hop": "",
		"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		if value := r.Header.Get(name); value != want {
			t.Errorf("the API received %s: %q, want %q", name, value, want)
		}
	}
	b, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusTemporaryRedirect || string(b) != "moved" {
		t.Errorf("%d %s, %v", got.StatusCode, b, err)
	}
	if h := got.Header; h.Get("Location") != "/v1/elsewhere?a=b" || strings.Join(h.Values("Link"), ",") != "<a>,<b>" || h.Get("Retry-After") != "7" || h.Get("Server") != "" {
		t.Errorf("headers %v", h)
	}
}

func TestProxy_callersOwnSignature_isKept(t *testing.T) {
	t.Parallel()
	own := "AWS4-HMAC-SHA256 Credential=other/20260701/us-east-1/execute-api/aws4_request, SignedHeaders=host, Signature=x"
	r, _, _ := exchange(t, func(http.ResponseWriter, *http.Request) {}, http.MethodPost, "/v1/jobs", "{}", http.Header{"Authorization": {own}}) //nolint:bodyclose // exchange closes it
	if got := r.Header.Get("Authorization"); got != own || r.Header.Get("X-Amz-Date") != "" {
		t.Errorf("Authorization: %s, %v", got, r.Header)
	}
}

func TestProxy_head_keepsTheLength(t *testing.T) {
	t.Parallel()
	_, _, got := exchange(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "4711") }, http.MethodHead, "/v1/instances/a", "", nil)
	if b, err := io.ReadAll(got.Body); err != nil || len(b) > 0 || got.ContentLength != 4711 {
		t.Errorf("length %d, %q, %v", got.ContentLength, b, err)
	}
}

func TestProxy_bodyOverTheLimit_isTooLarge(t *testing.T) {
	t.Parallel()
	r, _, got := exchange(t, func(http.ResponseWriter, *http.Request) {}, http.MethodPost, "/v1/jobs", strings.Repeat(" ", 1<<20+1), nil)
	if r != nil || got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, received %v", got.StatusCode, r)
	}
}

func TestProxy_cloudThatIsGone_isUnavailable(t *testing.T) {
	t.Parallel()
	_, _, got := exchange(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.MethodGet, "/v1/instances", "", nil)
	if b, err := io.ReadAll(got.Body); err != nil || got.StatusCode != http.StatusBadGateway || !strings.Contains(string(b), `"code": "unavailable"`) {
		t.Errorf("status %d, %s, %v", got.StatusCode, b, err)
	}
}

// The web UI's document may be reached by a link on another site; what it requests comes from itself.
func TestProxy_linkToTheWebUI_isServed(t *testing.T) {
	t.Parallel()
	r, _, got := exchange(t, func(http.ResponseWriter, *http.Request) {}, http.MethodGet, "/ui?status=Failed", "", http.Header{"Sec-Fetch-Site": {"cross-site"}})
	if r == nil || got.StatusCode != http.StatusOK {
		t.Errorf("status %d, received %v", got.StatusCode, r)
	}
}
