package awscheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// mostStored is the size of bodies that the proxy stores: more than AWS accepts for the services that it checks.
	mostStored = 32 << 20
	// mostWaiting is the number of requests that wait for their check. Further requests wait with their responses.
	mostWaiting = 64
	// idleLimit is less than the idle timeout of the emulator. Otherwise, the emulator may close a connection while the
	// proxy sends a request.
	idleLimit = 2 * time.Second
)

// Proxy forwards requests to an emulator and checks them. A request is checked after its response, so that it takes no
// longer.
type Proxy struct {
	// URL is the endpoint on the loopback interface.
	URL string

	emulator func() (endpoint string, err error)
	checker  *checker
	server   *http.Server
	forward  *httputil.ReverseProxy

	mu     sync.Mutex
	closed bool
	served sync.WaitGroup // requests

	waiting chan *exchange
	checked chan struct{} // closed after the last check
}

// exchange is a request with the status of its response, or 0 if there is no response.
type exchange struct {
	method, host, path string
	query              url.Values
	header             http.Header
	body               []byte // nil if the body was not stored
	size               int64  // of the body
	status             int
}

// NewProxy starts a proxy on a free port. The function emulator returns the endpoint of the emulator, or an error as
// long as it is unknown. The context limits only the start. The caller must call Close.
func NewProxy(ctx context.Context, emulator func() (endpoint string, err error)) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("awscheck: %w", err)
	}
	p := &Proxy{
		URL: "http://" + listener.Addr().String(), emulator: emulator, checker: newChecker(emulator),
		waiting: make(chan *exchange, mostWaiting), checked: make(chan struct{}),
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: p.rewrite, FlushInterval: -1,
		ErrorLog: log.New(os.Stderr, "awscheck: ", log.LstdFlags), // of responses that the emulator cuts
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 256, IdleConnTimeout: idleLimit, DisableCompression: true,
		},
		ModifyResponse: func(r *http.Response) error {
			if e, ok := r.Request.Context().Value(exchangeKey{}).(*exchange); ok {
				e.status = r.StatusCode
			}
			return nil
		},
		// The client notices the failure like one of a direct connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go p.checkAll(context.WithoutCancel(ctx))
	go func() { _ = p.server.Serve(listener) }() // until Close
	return p, nil
}

type exchangeKey struct{}

type emulatorKey struct{}

// rewrite keeps the Host header, because it is part of the signature.
func (*Proxy) rewrite(r *httputil.ProxyRequest) {
	endpoint, _ := r.In.Context().Value(emulatorKey{}).(*url.URL)
	r.SetURL(endpoint)
	r.Out.Host = r.In.Host
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.served.Done()
	endpoint, err := p.upstream()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	e := &exchange{
		method: r.Method, host: r.Host, path: r.URL.EscapedPath(), query: r.URL.Query(), header: r.Header.Clone(),
		size: max(r.ContentLength, 0),
	}
	if e.needsBody() {
		if err := e.store(r); err != nil {
			panic(http.ErrAbortHandler) // the client has disconnected, or sends more than any service accepts
		}
	}
	defer func() { p.waiting <- e }() // also if the client disconnects during the response
	ctx := context.WithValue(context.WithValue(r.Context(), exchangeKey{}, e), emulatorKey{}, endpoint)
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}

// begin counts a request. It returns false after Close.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.served.Add(1)
	return true
}

func (p *Proxy) upstream() (*url.URL, error) {
	endpoint, err := p.emulator()
	if err != nil {
		return nil, fmt.Errorf("awscheck: the emulator is not running: %w", err)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("awscheck: endpoint: %w", err)
	}
	return u, nil
}

// needsBody reports whether the body is needed for the check. It is not for an object of S3.
func (e *exchange) needsBody() bool {
	isObject := strings.Contains(strings.Trim(e.path, "/"), "/")
	return e.signer().service != "s3" || e.method == http.MethodPost || !isObject
}

// store reads the body of a request.
func (e *exchange) store(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostStored+1))
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if len(body) > mostStored {
		return errors.New("the request is too large")
	}
	e.body, e.size = body, int64(len(body))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), e.size
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	// The transport can repeat a request that was not sent, because the emulator had closed the connection.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// signer is the credential scope of a request.
type signer struct{ accessKey, region, service string }

// signer returns the credential scope of a request. It is empty if the request is not signed.
func (e *exchange) signer() signer {
	credential := e.query.Get("X-Amz-Credential")
	if _, after, found := strings.Cut(e.header.Get("Authorization"), "Credential="); found {
		credential, _, _ = strings.Cut(after, ",")
	}
	const parts = 5 // access key, date, region, service and a constant
	scope := strings.Split(credential, "/")
	if len(scope) != parts {
		return signer{}
	}
	return signer{scope[0], scope[2], scope[3]}
}

func (p *Proxy) checkAll(ctx context.Context) {
	defer close(p.checked)
	for e := range p.waiting {
		p.checker.check(ctx, e)
	}
}

// AddSession adds the session of a role that a test has assumed. Its requests are validated, but not compared with the
// policies of the role, because the test expects the emulator to deny some of them.
func (p *Proxy) AddSession(accessKey string) { p.checker.sessions.Store(accessKey, true) }

// Close stops the proxy and returns the result of all checks. Requests that are not answered are interrupted.
func (p *Proxy) Close() (*Report, error) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.server.Close()
	p.served.Wait()
	close(p.waiting)
	<-p.checked
	if err != nil {
		return nil, fmt.Errorf("awscheck: %w", err)
	}
	return p.checker.report, nil
}
