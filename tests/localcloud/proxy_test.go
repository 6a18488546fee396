package localcloud_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/originguard/guardtest"
)

const (
	folder  = "../../localstack"
	apiHost = "a1b2.execute-api.us-east-1.amazonaws.com"
	// serveProxy is a program that serves the proxy of argv[1] for the API host argv[2], prints its address, and ends
	// with standard input.
	serveProxy = `
import sys
import proxy
listener = proxy.listen(0)
proxy.serve(listener, sys.argv[1], sys.argv[2])
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
sys.stdin.read()`
)

// python installs the dependencies of the proxy and returns the path of the interpreter.
func python(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	install := exec.CommandContext(ctx, "python3", "venv_python.py", "ministack")
	install.Dir = folder
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: got %s", err, out)
	}
	return ".venv/bin/python" // relative to folder
}

// startProxy starts the signing proxy of make run in front of a handler that replaces the local cloud. It returns its
// address.
func startProxy(t *testing.T, cloud http.Handler) (address string) {
	t.Helper()
	upstream := httptest.NewServer(cloud)
	t.Cleanup(upstream.Close)
	python := python(t)
	// The cleanup stops the proxy after the test's own context has ended.
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	t.Cleanup(stop)
	p := exec.CommandContext(ctx, python, "-c", serveProxy, upstream.URL, apiHost)
	p.Dir = folder
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	p.Stderr = &output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := p.Wait(); err != nil || output.Len() > 0 {
			t.Errorf("proxy: got error %v, output %s", err, &output)
		}
	})
	if address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// The proxy signs the requests of every client that can connect, including browsers on this machine.
func TestProxy_hostileRequests_areRejected(t *testing.T) {
	t.Parallel()
	api := guardtest.NewAPI(t)
	guardtest.Check(t, startProxy(t, api), api)
}

// exchange is a request through the proxy: the request that the API received, if any, and the response of the proxy.
type exchange struct {
	request *http.Request
	sent    string // the body of the request

	status int
	header http.Header
	length int64
	body   string
}

// through sends a request with a chunked body through the proxy to an API.
func through(t *testing.T, api http.HandlerFunc, method, target, body string, header http.Header) (e exchange) {
	t.Helper()
	address := startProxy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.request, e.sent = r, string(b)
		api(w, r)
	}))
	chunked := io.MultiReader(strings.NewReader(body)) // the length is unknown
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+target, chunked)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if header == nil {
		r.Header = http.Header{}
	}
	response, err := http.DefaultTransport.RoundTrip(r) // does not follow redirects
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	e.status, e.header, e.length, e.body = response.StatusCode, response.Header, response.ContentLength, string(b)
	return e
}

// accepts is an API that accepts every request.
func accepts(http.ResponseWriter, *http.Request) {}

func TestProxy_request_arrivesSignedAndUnchanged(t *testing.T) {
	t.Parallel()
	const (
		target = "/v1/instances/~YS9i/events/a%20b%2Fc%C3%A9;v=1?x=%2F&y=a+b"
		trace  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		media  = "application/json; charset=utf-8"
	)
	e := through(t, accepts, http.MethodPatch, target, `{"a":1}`, http.Header{
		"Content-Type": {media}, "Idempotency-Key": {"k-1"}, "Cookie": {"secret=1"}, "Traceparent": {trace},
		"Connection": {"X-Hop"}, "X-Hop": {"1"},
	})
	r := e.request
	if r.RequestURI != target || r.Method != http.MethodPatch || r.Host != apiHost ||
		e.sent != `{"a":1}` || r.ContentLength != int64(len(e.sent)) {
		t.Errorf("%s %s of %s, length %d: got %s", r.Method, r.RequestURI, r.Host, r.ContentLength, e.sent)
	}
	auth := r.Header.Get("Authorization")
	signed := strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=test/")
	if !signed || !strings.Contains(auth, "/us-east-1/execute-api/aws4_request") {
		t.Errorf("Authorization: got %s", auth)
	}
	for name, want := range map[string]string{
		"Content-Type": media, "Idempotency-Key": "k-1", "Cookie": "", "X-Hop": "", "Traceparent": trace,
	} {
		if value := r.Header.Get(name); value != want {
			t.Errorf("the API received %s: got %q, want %q", name, value, want)
		}
	}
}

func TestProxy_response_arrivesUnchanged(t *testing.T) {
	t.Parallel()
	e := through(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/v1/elsewhere?a=b")
		w.Header()["Link"] = []string{"<a>", "<b>"}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, "moved")
	}, http.MethodGet, "/v1/instances", "", nil)
	if e.status != http.StatusTemporaryRedirect || e.body != "moved" {
		t.Errorf("got status %d, body %s", e.status, e.body)
	}
	for name, want := range map[string]string{
		"Location": "/v1/elsewhere?a=b", "Link": "<a>,<b>", "Retry-After": "7", "Server": "",
	} {
		if value := strings.Join(e.header.Values(name), ","); value != want {
			t.Errorf("the caller received %s: got %q, want %q", name, value, want)
		}
	}
}

func TestProxy_callersOwnSignature_isKept(t *testing.T) {
	t.Parallel()
	own := "AWS4-HMAC-SHA256 Credential=other/20260701/us-east-1/execute-api/aws4_request, " +
		"SignedHeaders=host, Signature=x"
	e := through(t, accepts, http.MethodPost, "/v1/jobs", "{}", http.Header{"Authorization": {own}})
	if got := e.request.Header.Get("Authorization"); got != own || e.request.Header.Get("X-Amz-Date") != "" {
		t.Errorf("Authorization: got %s, headers %v", got, e.request.Header)
	}
}

func TestProxy_head_keepsTheLength(t *testing.T) {
	t.Parallel()
	long := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "4711") }
	if e := through(t, long, http.MethodHead, "/v1/instances/a", "", nil); e.body != "" || e.length != 4711 {
		t.Errorf("got length %d, body %q", e.length, e.body)
	}
}

func TestProxy_bodyOverTheLimit_isTooLarge(t *testing.T) {
	t.Parallel()
	address := startProxy(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got request %v at the API", r)
	}))
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The test does not send the body, because the proxy rejects the length. A client that still sends would observe a
	// closed connection.
	_, err = fmt.Fprintf(c, "POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", address, 1<<20+1)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d", response.StatusCode)
	}
}

// If a server closes a connection while its client sends the next request, this request is lost.
func TestProxy_idleConnection_isClosedByTheClientFirst(t *testing.T) {
	t.Parallel()
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t.Fatal("http.DefaultTransport has another type")
	}
	query := exec.CommandContext(t.Context(), python(t), "-c", `import proxy; print(proxy.SERVER["channel_timeout"])`)
	query.Dir = folder
	out, err := query.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: got %s", err, out)
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || time.Duration(seconds)*time.Second <= transport.IdleConnTimeout {
		t.Errorf("idle limit of the proxy: got %d s, error %v; want more than %v of Go clients",
			seconds, err, transport.IdleConnTimeout)
	}
}

func TestProxy_stoppedCloud_isUnavailable(t *testing.T) {
	t.Parallel()
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	e := through(t, abort, http.MethodGet, "/v1/instances", "", nil)
	if e.status != http.StatusBadGateway || !strings.Contains(e.body, `"code": "unavailable"`) {
		t.Errorf("got status %d, body %s", e.status, e.body)
	}
}

// A link on another site may open the document of the web UI.
func TestProxy_linkToTheWebUI_isServed(t *testing.T) {
	t.Parallel()
	e := through(t, accepts, http.MethodGet, "/ui?status=Failed", "", http.Header{"Sec-Fetch-Site": {"cross-site"}})
	if e.request == nil || e.status != http.StatusOK {
		t.Errorf("got status %d, received %v", e.status, e.request)
	}
}
