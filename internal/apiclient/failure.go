package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

// failure is a request without a successful response.
type failure struct {
	err error
	// reached reports whether the hub may have carried out the request, and transient whether a repeated request may
	// succeed.
	reached, transient bool
	code               string // of the problem, or empty
	ignoresKey         bool   // the API ignores the key of the call, and did not carry out the request
	retryAfter         time.Duration
	cost               int // of a retry, in tokens of the budget
}

// StatusError is a response that is not one of the API, such as that of a gateway.
type StatusError struct {
	Status int
	Body   string // an excerpt
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// NewError returns the error of an operation that no problem describes.
func NewError(operation, instanceID string, retryable bool, cause error) error {
	return &provider.Error{Op: "HTTP." + operation, InstanceID: instanceID, Retryable: retryable, Err: cause}
}

func (*Client) failure(o *api.Operation, call *Call, retryable bool, err error) error {
	return NewError(o.ID, call.InstanceID, retryable, err)
}

// unsent returns the failure of a request without a response. A request to a host that cannot be reached had no effect.
func (c *Client) unsent(o *api.Operation, call *Call, err error) *failure {
	f := &failure{err: c.failure(o, call, true, err), reached: true, transient: true, cost: retryCost}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		f.reached = false
	}
	if errors.Is(err, errNoResponse) {
		f.cost = timeoutCost
	}
	return f
}

// cut returns the failure of a response whose body could not be read to its end.
func (c *Client) cut(o *api.Operation, call *Call, resp *http.Response, err error) *failure {
	err = fmt.Errorf("read response with status %d: %w", resp.StatusCode, err)
	return &failure{err: c.failure(o, call, true, err), reached: true, transient: true, cost: timeoutCost}
}

// rejected returns the failure of a response with the status of an error. A gateway in front of the API has no problems
// in its responses.
func (c *Client) rejected(o *api.Operation, call *Call, resp *http.Response, body []byte) *failure {
	f := &failure{reached: true, cost: retryCost, retryAfter: c.retryAfter(resp)}
	var p apiwire.Problem
	if err := json.Unmarshal(body, &p); err == nil && p.Code != "" {
		f.code, f.transient = p.Code, p.Retryable && !slices.Contains(call.Final, p.Code)
		f.reached = p.Retryable || resp.StatusCode >= http.StatusInternalServerError
		f.err = c.errorOf(o, call, &p)
		f.ignoresKey = call.Key != "" && p.Code == apiwire.CodeInvalidRequest && p.Field == api.RequireKey
		if f.ignoresKey {
			f.err = &NoRouteError{Operation: o.ID + " with an idempotency key", Reason: EarlierRelease}
		}
		return f
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests: // a gateway throttled the request and did not pass it on
		f.transient, f.reached = true, false
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, http.StatusRequestTimeout:
		f.transient = true
	}
	var err error = &StatusError{Status: resp.StatusCode, Body: provider.Excerpt(string(body))}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		err = fmt.Errorf("%w; check the credentials and the grants of the caller", err)
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		err = fmt.Errorf("%w; redirects are not followed, check the endpoint", err)
	}
	f.err = c.failure(o, call, f.transient, err)
	return f
}

// The delays between attempts: full jitter up to an exponential bound.
const (
	firstDelay    = 100 * time.Millisecond
	maxDelay      = 20 * time.Second
	maxRetryAfter = time.Minute
)

// delay returns the delay after attempt n. It is at least as long as the server requests.
func delay(n int, retryAfter time.Duration) time.Duration {
	return max(retryAfter, 0) + rand.N(min(firstDelay<<min(n-1, 10), maxDelay))
}

// retryAfter returns the delay of the Retry-After header, up to a minute; 0 without a valid one.
func (c *Client) retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if value == "" {
		return 0
	}
	var d time.Duration
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		d = maxRetryAfter
		if seconds < int64(maxRetryAfter/time.Second) {
			d = time.Duration(seconds) * time.Second
		}
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(c.Now())
	}
	return min(max(d, 0), maxRetryAfter)
}
