package apiclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

// gateway is a transport whose responses a test determines, with the clock of the client.
type gateway struct {
	respond  func(n int, r *http.Request) (*http.Response, error)
	now      time.Time
	requests []*http.Request
	slept    []time.Duration
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	g.requests = append(g.requests, r)
	return g.respond(len(g.requests), r)
}

func (g *gateway) dial(t *testing.T, opts ...apiclient.Option) *apiclient.Client {
	t.Helper()
	g.now = began
	set := apiclient.OptionFunc(func(c *apiclient.Config) error {
		c.HTTPClient = &http.Client{Transport: g}
		c.Now = func() time.Time { return g.now }
		c.Sleep = func(ctx context.Context, d time.Duration) error {
			g.slept = append(g.slept, d)
			g.now = g.now.Add(d)
			return ctx.Err()
		}
		return nil
	})
	c, err := apiclient.Dial("https://api.example.com/prod/", append([]apiclient.Option{set}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// response returns a response with a content type. The header has further names and values.
func response(status int, contentType, body string, header ...string) *http.Response {
	resp := &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	unavailable = `{"status":503,"code":"unavailable","detail":"try again","retryable":true}`
)

var read = apiclient.Call{Operation: "getInstance", Path: []string{"one"}, InstanceID: "one"}

func TestDo_request_hasRouteHeadersAndEscapedID(t *testing.T) {
	t.Parallel()
	g := &gateway{respond: func(int, *http.Request) (*http.Response, error) {
		return response(http.StatusAccepted, jsonType, `{"instanceId":"a/b"}`), nil
	}}
	c := g.dial(t, apiclient.OptionFunc(func(c *apiclient.Config) error {
		c.Authenticate = func(_ context.Context, r *http.Request, body []byte) error {
			r.Header.Set("Authorization", "for "+string(body))
			return nil
		}
		return nil
	}))
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, err := c.Do(perdure.WithTraceParent(t.Context(), trace), apiclient.Call{
		Operation: "raiseEvent", Path: []string{"a/b", "paid"}, InstanceID: "a/b", Key: "k", Body: 7,
	}); err != nil {
		t.Fatal(err)
	}
	r := g.requests[0]
	got := []string{
		r.Method, r.URL.String(), r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"),
		r.Header.Get("Authorization"), r.Header.Get("Traceparent"),
	}
	want := []string{
		http.MethodPost, "https://api.example.com/prod/v1/instances/~YS9i/events/paid", "k", jsonType, "for 7", trace,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A response that is not one of the API is an error that names the operation. It is retryable if another attempt may
// succeed.
//
//nolint:bodyclose // the client under test closes the bodies
func TestDo_hostileResponse_returnsProviderError(t *testing.T) {
	t.Parallel()
	const page = "<html>Bad gateway</html>"
	for name, tt := range map[string]struct {
		response  func() *http.Response
		retryable bool
		attempts  int
	}{
		"a page with 200":     {fixed(200, "text/html", page), true, 5},
		"a page with 502":     {fixed(502, "text/html", page), true, 5},
		"a page with 500":     {fixed(500, "text/html", page), true, 5},
		"a page with 403":     {fixed(403, "text/html", page), false, 1},
		"a redirect":          {fixed(302, "text/html", "", "Location", "/x"), false, 1},
		"a cut document":      {fixed(200, jsonType, `{"instanceId":"o`), true, 5},
		"an empty body":       {fixed(200, jsonType, ""), true, 5},
		"a list":              {fixed(200, jsonType, "[]"), true, 5},
		"another instance":    {fixed(200, jsonType, `{"instanceId":"two"}`), true, 5},
		"an unexpected 204":   {fixed(204, "", ""), false, 1},
		"an unknown problem":  {fixed(409, problemType, `{"code":"new"}`), false, 1},
		"an internal problem": {fixed(500, problemType, `{"code":"internal"}`), false, 1},
		"a large body": {
			fixed(200, jsonType, `"`+strings.Repeat("x", 9<<20)+`"`), false, 1,
		},
		"a body that breaks off": {func() *http.Response {
			resp := response(200, jsonType, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"inst`), broken{}))
			return resp
		}, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gateway{respond: func(int, *http.Request) (*http.Response, error) { return tt.response(), nil }}
			_, err := g.dial(t).Do(t.Context(), read)
			failed, ok := errors.AsType[*provider.Error](err)
			if !ok || failed.Retryable != tt.retryable || failed.Op != "HTTP.getInstance" ||
				failed.InstanceID != "one" {
				t.Errorf("error %v", err)
			}
			if len(g.requests) != tt.attempts {
				t.Errorf("%d attempts, want %d", len(g.requests), tt.attempts)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// fixed returns a function that returns a response.
func fixed(status int, contentType, body string, header ...string) func() *http.Response {
	return func() *http.Response { return response(status, contentType, body, header...) }
}

// broken is a body whose connection breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A request that may have reached the hub is repeated only if that has no other effect.
func TestDo_connectionBreaks_repeatsSafeCallsOnly(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection reset")
	unreachable := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	start := func(key string) apiclient.Call {
		return apiclient.Call{Operation: "startOrchestration", Path: []string{"a"}, Key: key}
	}
	for name, tt := range map[string]struct {
		call     apiclient.Call
		err      error
		attempts int
	}{
		"read":                 {read, lost, 5},
		"no effect":            {apiclient.Call{Operation: "cancelInstance", Path: []string{"one"}}, lost, 5},
		"with a key":           {start("k"), lost, 5},
		"without a key":        {start(""), lost, 1},
		"without a key, later": {start(""), unreachable, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gateway{respond: func(int, *http.Request) (*http.Response, error) { return nil, tt.err }}
			_, err := g.dial(t).Do(t.Context(), tt.call)
			if failed, ok := errors.AsType[*provider.Error](err); !ok || !failed.Retryable || !errors.Is(err, tt.err) {
				t.Errorf("error %v", err)
			}
			if len(g.requests) != tt.attempts {
				t.Errorf("%d attempts, want %d", len(g.requests), tt.attempts)
			}
		})
	}
}

// A problem that shows that an earlier attempt took effect is a success, but not after the first attempt.
func TestDo_repeatedRequestFindsItsEffect_succeeds(t *testing.T) {
	t.Parallel()
	gone := `{"status":404,"code":"instance_not_found","detail":"instance not found"}`
	for lost, want := range map[int]error{0: provider.ErrNotFound, 1: nil} {
		g := &gateway{respond: func(n int, _ *http.Request) (*http.Response, error) {
			if n <= lost {
				return nil, io.ErrUnexpectedEOF
			}
			return response(http.StatusNotFound, problemType, gone), nil
		}}
		_, err := g.dial(t).Do(t.Context(), apiclient.Call{
			Operation: "purgeInstance", Path: []string{"one"}, Settled: []string{apiwire.CodeInstanceNotFound},
		})
		if !errors.Is(err, want) {
			t.Errorf("after %d lost responses: %v", lost, err)
		}
	}
}

func TestDo_retryAfter_isObservedUpToAMinute(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "never": 0, "86400": time.Minute,
		"9999999999999999999":                              0, // not a number of seconds
		began.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		began.Add(-time.Hour).Format(http.TimeFormat):      0,
		began.Add(time.Hour).Format(http.TimeFormat):       time.Minute,
	} {
		g := &gateway{respond: func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return response(http.StatusServiceUnavailable, problemType, unavailable, "Retry-After", value), nil
			}
			return response(http.StatusOK, jsonType, `{"instanceId":"one"}`), nil
		}}
		if _, err := g.dial(t).Do(t.Context(), read); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		if len(g.slept) != 1 || g.slept[0] < want || g.slept[0] > want+100*time.Millisecond {
			t.Errorf("%q: slept %v, want %v", value, g.slept, want)
		}
	}
}

// Delays have full jitter below a bound that doubles.
func TestDo_repeatedFailures_backOff(t *testing.T) {
	t.Parallel()
	g := &gateway{respond: func(int, *http.Request) (*http.Response, error) {
		return response(http.StatusServiceUnavailable, problemType, unavailable), nil
	}}
	c := g.dial(t, apiclient.OptionFunc(func(c *apiclient.Config) error { c.MaxAttempts = 12; return nil }))
	if _, err := c.Do(t.Context(), read); err == nil || len(g.slept) != 11 {
		t.Fatalf("slept %v, %v", g.slept, err)
	}
	for n, d := range g.slept {
		if longest := min(100*time.Millisecond<<n, 20*time.Second); d < 0 || d > longest {
			t.Errorf("delay %d is %v, want at most %v", n, d, longest)
		}
	}
}

// During an hour of throttling, a client that makes a call each second soon makes one request for each call. After the
// outage, calls are repeated again.
func TestDo_anHourOfThrottling_doesNotMultiplyRequests(t *testing.T) {
	t.Parallel()
	throttled := true
	g := &gateway{}
	g.respond = func(int, *http.Request) (*http.Response, error) {
		if throttled {
			return response(http.StatusTooManyRequests, jsonType, `{"message":"Too Many Requests"}`), nil
		}
		return response(http.StatusOK, jsonType, `{"instanceId":"one"}`), nil
	}
	c := g.dial(t)
	const calls, retries = 3600, 100
	for range calls {
		failed, ok := errors.AsType[*provider.Error](must(c.Do(t.Context(), read)))
		if !ok || !failed.Retryable {
			t.Fatalf("error %v", failed)
		}
	}
	if n := len(g.requests); n != calls+retries {
		t.Errorf("%d requests, want %d", n, calls+retries)
	}

	throttled = false
	for range 100 {
		if err := must(c.Do(t.Context(), read)); err != nil {
			t.Fatal(err)
		}
	}
	throttled = true
	before := len(g.requests)
	_ = must(c.Do(t.Context(), read))
	if n := len(g.requests) - before; n != 5 {
		t.Errorf("%d requests after the outage, want 5", n)
	}
}

func must(_ *apiclient.Response, err error) error { return err }

func TestDo_contextEnds_returnsItsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := &gateway{respond: func(int, *http.Request) (*http.Response, error) {
		cancel()
		return response(http.StatusServiceUnavailable, problemType, unavailable), nil
	}}
	if _, err := g.dial(t).Do(ctx, read); !errors.Is(err, context.Canceled) || len(g.requests) != 1 {
		t.Errorf("error %v after %d requests", err, len(g.requests))
	}
}

// A server that accepts a request and never responds does not block a call, and its error is no deadline of the caller.
func TestDo_serverHangs_endsTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{respond: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		from := time.Now()
		_, err := g.dial(t).Do(t.Context(), read)
		failed, ok := errors.AsType[*provider.Error](err)
		if took := time.Since(from); !ok || !failed.Retryable || errors.Is(err, context.DeadlineExceeded) ||
			took != 5*40*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

func TestDo_invalidKeyOrOperation_isRejected(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	c := g.dial(t)
	for _, key := range []string{"a,b", " a", "a\t", "a\x00b", "a\xff"} {
		_, err := c.Do(t.Context(), apiclient.Call{Operation: "startOrchestration", Path: []string{"a"}, Key: key})
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != "Idempotency-Key" {
			t.Errorf("key %q: %v", key, err)
		}
	}
	_, err := c.Do(t.Context(), apiclient.Call{Operation: "reconcile"})
	if e, ok := errors.AsType[*apiclient.NoRouteError](err); !ok || e.Operation != "reconcile" || e.Reason == "" ||
		!errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an operation without a route: %v", err)
	}
	if len(g.requests) > 0 {
		t.Errorf("%d requests", len(g.requests))
	}
}

func TestDial_invalidEndpoint_isRejected(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{
		"", "api.example.com", "ftp://a", "https://", "https://u@a", "https://a?b", "https://a#b", "http://%",
	} {
		if _, err := apiclient.Dial(endpoint); err == nil {
			t.Errorf("%q is accepted", endpoint)
		}
	}
	for _, endpoint := range []string{"https://a", "https://a/", "http://a:80/stage", "https://a/v1", "https://a/v1/"} {
		c, err := apiclient.Dial(endpoint)
		if err != nil || strings.HasSuffix(c.Endpoint.Path, "/") || strings.HasSuffix(c.Endpoint.Path, "v1") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// Each code of the table is an error that a program can distinguish, or a failure with the code in its text.
func TestErrorOf_codesOfTheTable_areKnown(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	add := func(all map[int][]string) {
		for _, list := range all {
			for _, code := range list {
				codes[code] = true
			}
		}
	}
	add(api.CommonErrors())
	for _, o := range api.Operations() {
		add(o.Errors)
	}
	for code := range codes {
		g := &gateway{respond: func(int, *http.Request) (*http.Response, error) {
			body := `{"code":"` + code + `","field":"f","detail":"f is wrong"}`
			return response(http.StatusConflict, problemType, body), nil
		}}
		err := must(g.dial(t).Do(t.Context(), read))
		failed, ok := errors.AsType[*provider.Error](err)
		if err == nil || ok && !strings.Contains(failed.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if len(codes) < 40 {
		t.Errorf("%d codes", len(codes))
	}
}
