package lambdahandler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/apicheck"
	"github.com/perdure/perdure/provider"
)

// gateways sends requests to an API in three ways: plain HTTP over connections in memory, events of an HTTP API, and
// events of a function URL.
type gateways struct {
	t        *testing.T
	document *apicheck.Document
	conns    chan net.Conn
	lambda   func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	// route is the route of the last request.
	route  string
	log    *bytes.Buffer
	caller *events.APIGatewayV2HTTPRequestContextAuthorizerDescription
}

// The names of the gateways.
const (
	byHTTP        = "HTTP"
	byAPI         = "an HTTP API"
	byFunctionURL = "a function URL"
)

// apiResponse is the response to a request.
type apiResponse struct {
	apicheck.Reply

	gateway string
	took    time.Duration
}

// apiRequest is a request.
type apiRequest struct {
	method, target, body string
	header               []string
	raw                  string // replaces the other fields, for HTTP only
}

func (r *apiRequest) String() string {
	if r.raw != "" {
		return fmt.Sprintf("%.120q", r.raw)
	}
	return fmt.Sprintf("%s %.120s %.80q %.80q", r.method, r.target, r.header, r.body)
}

// headers returns the header of r. The default content type of a body is JSON.
func (r *apiRequest) headers() []string {
	if r.body == "" || len(r.header) > 0 && r.header[0] == "Content-Type" {
		return r.header
	}
	return append([]string{"Content-Type", "application/json"}, r.header...)
}

// memoryListener accepts connections in memory.
type memoryListener struct {
	conns chan net.Conn
	ended context.Context //nolint:containedctx // net.Listener takes no context
}

func (l memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended.Done():
		return nil, net.ErrClosed
	}
}
func (l memoryListener) Close() error   { return nil }
func (l memoryListener) Addr() net.Addr { return &net.TCPAddr{} }

// open serves the API of a provider in a synctest bubble until the test ends.
func open(t *testing.T, p provider.Provider) *gateways {
	t.Helper()
	d := &gateways{t: t, conns: make(chan net.Conn), log: &bytes.Buffer{}}
	api := httpapi.New(
		client.New(p, client.WithCaller("")), admin.New(p, admin.WithCaller("")),
		httpapi.WithLogger(slog.New(slog.NewTextHandler(d.log, nil))),
	)
	noted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r)
		d.route = r.Pattern
	})
	d.lambda = httpHandler(noted, authorizedByIAM)
	rec := httptest.NewRecorder()
	api.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil))
	var err error
	if d.document, err = apicheck.Parse(rec.Body.Bytes()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- serveHTTP(ctx, memoryListener{d.conns, ctx}, noted) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

// dial connects to the server.
func (d *gateways) dial() net.Conn {
	here, there := net.Pipe()
	d.conns <- there
	return here
}

// byHTTP sends a request over a new connection.
//
//nolint:bodyclose // the connection is closed
func (d *gateways) byHTTP(r *apiRequest) apiResponse {
	d.t.Helper()
	text := r.raw
	if text == "" {
		text = fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n", r.method, r.target)
		for header := r.headers(); len(header) > 0; header = header[2:] {
			text += header[0] + ": " + header[1] + "\r\n"
		}
		if r.body != "" {
			text += fmt.Sprintf("Content-Length: %d\r\n", len(r.body))
		}
		text += "\r\n" + r.body
	}
	c := d.dial()
	began := time.Now()
	go func() { _, _ = io.WriteString(c, text) }() // the server may close the connection before it has read the text
	in := bufio.NewReader(c)
	a, err := http.ReadResponse(in, &http.Request{Method: r.method})
	if err == nil && a.StatusCode == http.StatusContinue {
		a, err = http.ReadResponse(in, &http.Request{Method: r.method})
	}
	if err != nil {
		d.t.Fatalf("%s: got no response: %v", r, err)
	}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		d.t.Fatalf("%s: got error %v", r, err)
	}
	took := time.Since(began)
	c.Close()
	synctest.Wait()
	return d.response(byHTTP, r.method, a.StatusCode, a.Header, body, took)
}

// event returns the event of a gateway for a request. An HTTP API decodes the path and truncates it at a question mark.
func (d *gateways) event(gateway string, r *apiRequest) events.APIGatewayV2HTTPRequest {
	path, query, _ := strings.Cut(r.target, "?")
	domain := "x.lambda-url.eu-central-1.on.aws"
	if gateway == byAPI {
		domain = "x.execute-api.eu-central-1.amazonaws.com"
		if decoded, err := url.PathUnescape(path); err == nil {
			path, _, _ = strings.Cut(decoded, "?")
		}
	}
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: path, RawQueryString: query, Body: r.body, Headers: map[string]string{},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			DomainName: domain, HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.method, Path: path, SourceIP: "192.0.2.7",
			},
			Authorizer: d.caller,
		},
	}
	if !utf8.ValidString(r.body) { // gateways encode binary bodies
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(r.body)), true
	}
	for header := r.headers(); len(header) > 0; header = header[2:] {
		name := strings.ToLower(header[0])
		if before, there := e.Headers[name]; there {
			e.Headers[name] = before + "," + header[1]
			continue
		}
		e.Headers[name] = header[1]
	}
	return e
}

// byLambda invokes the function with the event of a request, encoded as JSON like in the Lambda runtime.
func (d *gateways) byLambda(gateway string, r *apiRequest) apiResponse {
	d.t.Helper()
	text, err := json.Marshal(d.event(gateway, r))
	if err != nil {
		d.t.Fatal(err)
	}
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(text, &e); err != nil {
		d.t.Fatal(err)
	}
	began := time.Now()
	a, err := d.lambda(d.t.Context(), e)
	if err != nil {
		d.t.Fatalf("%s by %s: got a failed invocation: %v", r, gateway, err)
	}
	took := time.Since(began)
	if n := lambdaBytes(d.t, a); n > lambdaLimit {
		d.t.Errorf("%s by %s: got a response of %d bytes, more than the limit of Lambda", r, gateway, n)
	}
	header := http.Header{}
	for name, value := range a.Headers {
		header.Set(name, value)
	}
	return d.response(gateway, r.method, a.StatusCode, header, []byte(a.Body), took)
}

func (d *gateways) response(
	gateway, method string, status int, header http.Header, body []byte, took time.Duration,
) apiResponse {
	a := apicheck.Reply{Method: method, Path: d.route, Code: status, Header: header, Body: body}
	if method == http.MethodHead {
		a.Method, a.Head = http.MethodGet, true
	}
	d.route = ""
	return apiResponse{a, gateway, took}
}

// lambdaLimit is the maximum size of a response of Lambda.
const lambdaLimit = 6 << 20

// lambdaBytes returns the size of a response as the runtime of Lambda encodes it.
func lambdaBytes(t *testing.T, a events.APIGatewayV2HTTPResponse) int {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

// problem is the part of a problem that tests check.
type problem struct {
	Code   string `json:"code"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// problemOf returns the problem of a response, or an empty one.
func problemOf(r *apiResponse) (p problem) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/problem+json") && !r.Head {
		_ = json.Unmarshal(r.Body, &p)
	}
	return p
}
