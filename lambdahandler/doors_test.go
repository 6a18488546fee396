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

// doors are the ways into an API: plain HTTP as in listening mode, over connections in memory, and the events of an HTTP API and of a function URL.
type doors struct {
	t        *testing.T
	document *apicheck.Document
	conns    chan net.Conn
	lambda   func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	// route is that of the last request.
	route  string
	log    *bytes.Buffer
	caller *events.APIGatewayV2HTTPRequestContextAuthorizerDescription
}

// The doors.
const (
	byHTTP        = "HTTP"
	byAPI         = "an HTTP API"
	byFunctionURL = "a function URL"
)

// reply is the answer to a request, and when it came.
type reply struct {
	apicheck.Answer

	door string
	took time.Duration
}

// asked is a request as its sender writes it.
type asked struct {
	method, target, body string
	header               []string
	raw                  string // by HTTP alone, instead of the other fields
}

func (r *asked) String() string {
	if r.raw != "" {
		return fmt.Sprintf("%.120q", r.raw)
	}
	return fmt.Sprintf("%s %.120s %.80q %.80q", r.method, r.target, r.header, r.body)
}

// headers returns the header of r, with the content type of JSON for a body unless the header has a type.
func (r *asked) headers() []string {
	if r.body == "" || len(r.header) > 0 && r.header[0] == "Content-Type" {
		return r.header
	}
	return append([]string{"Content-Type", "application/json"}, r.header...)
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	ended context.Context //nolint:containedctx // a listener has no other
}

func (l pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended.Done():
		return nil, net.ErrClosed
	}
}
func (l pipes) Close() error   { return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

// open opens the doors to an API over a provider, in a bubble, until the test ends.
func open(t *testing.T, p provider.Provider) *doors {
	t.Helper()
	d := &doors{t: t, conns: make(chan net.Conn), log: &bytes.Buffer{}}
	api := httpapi.New(client.New(p, client.WithCaller("")), admin.New(p, admin.WithCaller("")), httpapi.WithLogger(slog.New(slog.NewTextHandler(d.log, nil))))
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
	go func() { served <- serveHTTP(ctx, pipes{d.conns, ctx}, noted) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

// dial connects to the server, and returns its answer.
func (d *doors) dial() net.Conn {
	here, there := net.Pipe()
	d.conns <- there
	return here
}

// byHTTP asks over a connection of its own.
//
//nolint:bodyclose // the connection is closed
func (d *doors) byHTTP(r *asked) reply {
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
	go func() { _, _ = io.WriteString(c, text) }() // the server may have had enough before the end
	in := bufio.NewReader(c)
	a, err := http.ReadResponse(in, &http.Request{Method: r.method})
	if err == nil && a.StatusCode == http.StatusContinue {
		a, err = http.ReadResponse(in, &http.Request{Method: r.method})
	}
	if err != nil {
		d.t.Fatalf("%s: no answer: %v", r, err)
	}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		d.t.Fatalf("%s: %v", r, err)
	}
	took := time.Since(began)
	c.Close()
	synctest.Wait()
	return d.reply(byHTTP, r.method, a.StatusCode, a.Header, body, took)
}

// event is a request as a gateway passes it: an HTTP API decodes the path, and then drops what follows a question mark.
func (d *doors) event(door string, r *asked) events.APIGatewayV2HTTPRequest {
	path, query, _ := strings.Cut(r.target, "?")
	domain := "x.lambda-url.eu-central-1.on.aws"
	if door == byAPI {
		domain = "x.execute-api.eu-central-1.amazonaws.com"
		if decoded, err := url.PathUnescape(path); err == nil {
			path, _, _ = strings.Cut(decoded, "?")
		}
	}
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: path, RawQueryString: query, Body: r.body, Headers: map[string]string{},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			DomainName: domain, HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: r.method, Path: path, SourceIP: "192.0.2.7"}, Authorizer: d.caller,
		},
	}
	if !utf8.ValidString(r.body) { // as gateways do with a body that is not text
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

// byLambda asks through an event, in JSON as the runtime has it.
func (d *doors) byLambda(door string, r *asked) reply {
	d.t.Helper()
	text, err := json.Marshal(d.event(door, r))
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
		d.t.Fatalf("%s by %s: the invocation fails, which is a 5xx: %v", r, door, err)
	}
	took := time.Since(began)
	if n := inLambda(d.t, a); n > lambdaLimit {
		d.t.Errorf("%s by %s: the answer has %d bytes, which Lambda does not take", r, door, n)
	}
	header := http.Header{}
	for name, value := range a.Headers {
		header.Set(name, value)
	}
	return d.reply(door, r.method, a.StatusCode, header, []byte(a.Body), took)
}

func (d *doors) reply(door, method string, status int, header http.Header, body []byte, took time.Duration) reply {
	a := apicheck.Answer{Method: method, Path: d.route, Code: status, Header: header, Body: body}
	if method == http.MethodHead {
		a.Method, a.Head = http.MethodGet, true
	}
	d.route = ""
	return reply{a, door, took}
}

// lambdaLimit is the largest answer that Lambda accepts.
const lambdaLimit = 6 << 20

// inLambda is how many bytes an answer takes as Lambda's runtime writes it.
func inLambda(t *testing.T, a events.APIGatewayV2HTTPResponse) int {
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

// problemOf returns the problem in an answer, empty for an answer that has none.
func problemOf(r *reply) (p problem) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/problem+json") && !r.Head {
		_ = json.Unmarshal(r.Body, &p)
	}
	return p
}
