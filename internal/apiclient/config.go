// Package apiclient calls the HTTP API for the packages client and admin: it authenticates requests, retries calls that
// are safe to repeat, and returns the errors that a call of the provider would return.
package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/sleep"
)

// Option configures the connection to an API.
type Option interface {
	// ApplyDial sets the option. It returns an error if the option has no meaning for an API.
	ApplyDial(c *Config) error
}

// OptionFunc is a function that implements Option.
type OptionFunc func(c *Config) error

// ApplyDial implements Option.
func (f OptionFunc) ApplyDial(c *Config) error { return f(c) }

// Config configures the connection to an API.
type Config struct {
	HTTPClient *http.Client
	// Endpoint is the URL of the API. Dial sets it before the options.
	Endpoint *url.URL
	// Authenticate adds credentials to a request. nil means none.
	Authenticate func(ctx context.Context, r *http.Request, body []byte) error
	Now          func() time.Time
	Sleep        func(ctx context.Context, d time.Duration) error
	Interceptors []perdure.Interceptor
	// MaxAttempts is the maximum number of requests of a call.
	MaxAttempts int
}

// defaultMaxAttempts is the default of Config.MaxAttempts. The delays between the attempts add up to 3 s at most.
const defaultMaxAttempts = 5

// Client calls an API. It is safe for concurrent use.
type Client struct {
	Config

	http       *http.Client
	operations map[string]api.Operation
	budget     budget
}

// Dial returns a client of the API at the endpoint. It makes no requests.
func Dial(endpoint string, opts ...Option) (*Client, error) {
	u, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	c := &Client{
		Config:     Config{Endpoint: u, Sleep: sleep.For, MaxAttempts: defaultMaxAttempts},
		operations: map[string]api.Operation{},
	}
	c.Now = time.Now //nolint:forbidigo // the default clock
	for _, opt := range opts {
		if err := opt.ApplyDial(&c.Config); err != nil {
			return nil, err
		}
	}
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{}
	}
	h := *c.HTTPClient
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &h
	for _, o := range api.Operations() {
		c.operations[o.ID] = o
	}
	return c, nil
}

// ParseEndpoint returns the URL of an API, without a path of its routes.
func ParseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("endpoint: %w", err)
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("endpoint %q: must be a URL such as https://api.example.com", endpoint)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("endpoint: must not have a user, a query or a fragment")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	u.RawPath = ""
	return u, nil
}

// EndpointVariable is the environment variable with the endpoint of the API.
const EndpointVariable = "PERDURE_API"

// EarlierRelease is the reason of a NoRouteError whose operation a later release of the API has.
const EarlierRelease = "its release is earlier than that of the client; deploy the API first"

// NoRouteError reports an operation, or an option of an operation, that the HTTP API does not have. It is an
// errors.ErrUnsupported.
type NoRouteError struct {
	// Operation is the name of the operation, and Reason why the API does not have it.
	Operation, Reason string
}

// Error implements error.
func (e *NoRouteError) Error() string {
	return fmt.Sprintf("%s is not supported over the HTTP API (%s); use New with a provider and direct permissions",
		e.Operation, e.Reason)
}

// Is reports whether target is errors.ErrUnsupported.
func (*NoRouteError) Is(target error) bool { return target == errors.ErrUnsupported }
