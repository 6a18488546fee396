package apiclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

const (
	// maxResponse is more than the largest response of the API, which must fit a Lambda response of 6 MB.
	maxResponse = 8 << 20
	// attemptTimeout is longer than the 30 s after which API Gateway ends a request.
	attemptTimeout = 40 * time.Second
)

const typeJSON = "application/json"

// Call is a call of an operation.
type Call struct {
	// Operation is the ID in the table of operations, and Path has the values of the parameters of its path.
	Operation string
	Path      []string
	Query     url.Values
	// Key is the Idempotency-Key, or empty. If the API has an earlier release that ignores it, the call fails with a
	// NoRouteError. If KeyIsOptional is set, it is made without the key instead, and is not repeated.
	Key           string
	KeyIsOptional bool
	// Body is encoded as JSON. nil means no body.
	Body any
	// Accept is the media type of the response. The default is JSON.
	Accept string
	// InstanceID is the instance of the call, for errors. If the response names another instance, the call fails unless
	// NamesOther is set.
	InstanceID string
	NamesOther bool
	// Settled holds codes of problems that mean success if an earlier attempt of this call may have reached the hub: it
	// has taken effect.
	Settled []string
	// Final holds codes of problems after which the call is not repeated, although the problem may pass.
	Final []string
	// Errors returns the error of a problem, or nil for the common errors.
	Errors func(p *apiwire.Problem) error
}

// Response is a successful response.
type Response struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration
	// Repeated reports whether an earlier attempt may have taken effect, so that the response describes the state after
	// it.
	Repeated bool
}

// Decode decodes the body.
func (r *Response) Decode(into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return &provider.Error{Op: "HTTP", Retryable: true, Err: fmt.Errorf("decode response: %w", err)}
	}
	return nil
}

// Do makes a call, and repeats it after failures that may pass if that is safe.
func (c *Client) Do(ctx context.Context, call Call) (*Response, error) {
	o, body, err := c.prepare(&call)
	if err != nil {
		return nil, err
	}
	repeatable := isRepeatable(&o, &call)
	cost := 0          // of the last retry
	uncertain := false // an earlier attempt may have reached the hub
	for n := 1; ; n++ {
		resp, failed := c.attempt(ctx, &o, &call, body)
		switch {
		case failed == nil:
			c.budget.succeeded(cost)
			resp.Repeated = uncertain
			return resp, nil
		case failed.ignoresKey && call.KeyIsOptional:
			return c.withoutKey(ctx, &o, call, uncertain, failed.err)
		case uncertain && slices.Contains(call.Settled, failed.code):
			c.budget.succeeded(cost)
			return &Response{Status: http.StatusNoContent, Repeated: true}, nil
		case ctx.Err() != nil:
			return nil, c.failure(&o, &call, true, fmt.Errorf("%w: %w", ctx.Err(), failed.err))
		}
		uncertain = uncertain || failed.reached
		if cost = failed.cost; !c.mayRepeat(failed, repeatable, n) {
			return nil, failed.err
		}
		if err := c.Sleep(ctx, delay(n, failed.retryAfter)); err != nil {
			return nil, c.failure(&o, &call, true, fmt.Errorf("%w: %w", err, failed.err))
		}
	}
}

// mayRepeat reports whether a call is repeated after attempt n, and takes the cost from the budget if it is.
func (c *Client) mayRepeat(failed *failure, repeatable bool, n int) bool {
	safe := repeatable || !failed.reached
	return failed.transient && safe && n < c.MaxAttempts && c.budget.take(failed.cost)
}

// withoutKey makes a call without its key, unless an earlier attempt may have taken effect: during a deployment, it may
// have reached a later release of the API.
func (c *Client) withoutKey(
	ctx context.Context, o *api.Operation, call Call, uncertain bool, ignored error,
) (*Response, error) {
	if uncertain {
		return nil, c.failure(o, &call, true, ignored)
	}
	call.Key = ""
	return c.Do(ctx, call)
}

// Get makes a call and decodes its response.
func Get[T any](ctx context.Context, c *Client, call Call) (v T, err error) {
	resp, err := c.Do(ctx, call)
	if err == nil && len(resp.Body) > 0 {
		err = resp.Decode(&v)
	}
	return v, err
}

// isRepeatable reports whether a call whose response was lost can be repeated.
func isRepeatable(o *api.Operation, call *Call) bool {
	switch o.Repeat {
	case api.RepeatAgain:
		return false
	case api.RepeatByKey:
		return call.Key != ""
	default:
		return true
	}
}

func (c *Client) prepare(call *Call) (o api.Operation, body []byte, err error) {
	o, known := c.operations[call.Operation]
	if !known || o.Path == "" {
		return o, nil, &NoRouteError{Operation: call.Operation, Reason: o.NoRoute}
	}
	if err := CheckKey(call.Key); err != nil {
		return o, nil, err
	}
	if call.Body != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(call.Body); err != nil {
			return o, nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	return o, body, nil
}

// CheckKey rejects a key that a gateway could change.
func CheckKey(key string) error {
	if strings.Contains(key, ",") || strings.TrimSpace(key) != key || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, unicode.IsControl) {
		return &provider.FieldError{
			Field:   apiwire.HeaderIdempotencyKey,
			Problem: "must be UTF-8 without a comma, control characters, and spaces at its start or end",
		}
	}
	return nil
}

// attempt sends a request once.
func (c *Client) attempt(caller context.Context, o *api.Operation, call *Call, body []byte) (*Response, *failure) {
	ctx, stop := context.WithTimeout(caller, attemptTimeout)
	defer stop()
	r, err := c.request(ctx, o, call, body)
	if err != nil {
		return nil, &failure{err: c.failure(o, call, false, err)}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unsent(o, call, ofAttempt(caller, ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, c.cut(o, call, resp, ofAttempt(caller, ctx, err))
	case len(content) > maxResponse:
		err := c.failure(o, call, false, fmt.Errorf("response exceeds %d bytes", maxResponse))
		return nil, &failure{err: err, reached: true}
	case resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices:
		return c.accept(o, call, resp, content)
	default:
		return nil, c.rejected(o, call, resp, content)
	}
}

// errNoResponse is the cause of an attempt that took too long. It is no context.DeadlineExceeded, which would be the
// caller's.
var errNoResponse = fmt.Errorf("no response within %v", attemptTimeout)

// ofAttempt returns errNoResponse for an attempt that has exceeded its own time limit.
func ofAttempt(caller, attempt context.Context, err error) error {
	if attempt.Err() != nil && caller.Err() == nil {
		return errNoResponse
	}
	return err
}

// queryOf returns the query of a call. An API that ignores the key rejects api.RequireKey.
func queryOf(o *api.Operation, call *Call) url.Values {
	if call.Key == "" || !slices.Contains(o.Query, api.RequireKey) {
		return call.Query
	}
	query := url.Values{api.RequireKey: {"true"}}
	maps.Copy(query, call.Query)
	return query
}

func (c *Client) request(ctx context.Context, o *api.Operation, call *Call, body []byte) (*http.Request, error) {
	u := *c.Endpoint
	path := []string{u.Path}
	values := call.Path
	for s := range strings.SplitSeq(strings.TrimPrefix(o.Path, "/"), "/") {
		if strings.HasPrefix(s, "{") {
			if len(values) == 0 {
				return nil, fmt.Errorf("operation %s lacks a value for %s", o.ID, s)
			}
			s, values = apiwire.EscapeID(values[0]), values[1:]
		}
		path = append(path, s)
	}
	u.Path, u.RawQuery = strings.Join(path, "/"), queryOf(o, call).Encode()
	r, err := http.NewRequestWithContext(ctx, o.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	r.Header.Set("Accept", cmp.Or(call.Accept, typeJSON))
	r.Header.Set("User-Agent", "perdure-go")
	if len(body) > 0 {
		r.Header.Set("Content-Type", typeJSON)
	}
	if call.Key != "" {
		r.Header.Set(apiwire.HeaderIdempotencyKey, call.Key)
	}
	if trace := perdure.TraceParentFrom(ctx); trace != "" {
		r.Header.Set("Traceparent", trace)
	}
	if c.Authenticate == nil {
		return r, nil
	}
	return r, c.Authenticate(ctx, r, body)
}

// accept checks a successful response. A page of a gateway, a cut document and the response of another request are
// failures.
func (c *Client) accept(o *api.Operation, call *Call, resp *http.Response, body []byte) (*Response, *failure) {
	if _, expected := o.Success[resp.StatusCode]; !expected {
		err := fmt.Errorf("unexpected status %s", resp.Status)
		return nil, &failure{err: c.failure(o, call, false, err), reached: true}
	}
	ok := &Response{Status: resp.StatusCode, Body: body, RetryAfter: c.retryAfter(resp)}
	if resp.StatusCode == http.StatusNoContent {
		ok.Body = nil
		return ok, nil
	}
	wrong := func(err error) (*Response, *failure) {
		return nil, &failure{err: c.failure(o, call, true, err), reached: true, transient: true, cost: retryCost}
	}
	want := cmp.Or(call.Accept, typeJSON)
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != want {
		return wrong(fmt.Errorf("response has the content type %s, not %s",
			provider.Excerpt(resp.Header.Get("Content-Type")), want))
	}
	if want != typeJSON {
		return ok, nil
	}
	if !json.Valid(body) {
		return wrong(fmt.Errorf("response of %d bytes is not valid JSON", len(body)))
	}
	var of struct {
		InstanceID string `json:"instanceId"`
	}
	if err := json.Unmarshal(body, &of); err != nil {
		return wrong(fmt.Errorf("response is not a JSON object: %w", err))
	}
	if call.InstanceID != "" && !call.NamesOther && of.InstanceID != "" && of.InstanceID != call.InstanceID {
		return wrong(fmt.Errorf("response is for instance %q", provider.Excerpt(of.InstanceID)))
	}
	return ok, nil
}
