package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/remote"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/clientcall"
)

// DialOption is an option of Dial and Open, and of the functions of the same names in package admin. WithClock,
// WithSleep and WithInterceptors are options of both New and Dial.
type DialOption = apiclient.Option

// NoRouteError reports an operation, or an option of an operation, that the HTTP API does not have. An API of an
// earlier release may lack an option. It is an errors.ErrUnsupported.
type NoRouteError = apiclient.NoRouteError

// ApplyDial implements DialOption. It returns an error for WithCaller, WithCodec and WithQuerier: the API sets the
// caller, decodes payloads and runs queries.
func (o Option) ApplyDial(c *apiclient.Config) error {
	set := options{}
	if o(&set); set.identify != nil || set.codecs != nil || set.querier != nil {
		return errors.New("WithCaller, WithCodec and WithQuerier require New: the HTTP API has its own")
	}
	if set.now != nil {
		c.Now = set.now
	}
	if set.sleep != nil {
		c.Sleep = set.sleep
	}
	c.Interceptors = append(c.Interceptors, set.interceptors...)
	return nil
}

// WithHTTPClient sets the HTTP client. The default is a new http.Client. Redirects are not followed.
func WithHTTPClient(h *http.Client) DialOption {
	return apiclient.OptionFunc(func(c *apiclient.Config) error { c.HTTPClient = h; return nil })
}

// WithToken sets the source of the bearer token of each request, such as a JWT. The source is called before each
// attempt and must cache tokens itself. It must be safe for concurrent use. Package client/sigv4 signs requests for IAM
// instead.
func WithToken(source func(ctx context.Context) (string, error)) DialOption {
	return apiclient.OptionFunc(func(c *apiclient.Config) error {
		c.Authenticate = func(ctx context.Context, r *http.Request, _ []byte) error {
			token, err := source(ctx)
			if err != nil {
				return fmt.Errorf("get token: %w", err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
		return nil
	})
}

// WithMaxAttempts sets the maximum number of requests of a call, at least 1. The default is 5.
func WithMaxAttempts(n int) DialOption {
	return apiclient.OptionFunc(func(c *apiclient.Config) error {
		if c.MaxAttempts = n; n < 1 {
			return fmt.Errorf("WithMaxAttempts: must be at least 1, is %d", n)
		}
		return nil
	})
}

// Dial returns a client of the hub whose HTTP API (package httpapi) is at an endpoint, such as https://api.example.com.
// It makes no requests. The client has the methods, errors and iterators of a client of New. The API decides the
// caller's name: ContextWithCaller has no effect. Schedules.Pause and Schedules.Resume return nil for an update that is
// sent and has no response in time. PrepareStart, StoredPayload, and Payload for a payload that is not inline, return a
// *NoRouteError.
//
// The client repeats a request after a failure that may pass if a repetition has no other effect. It uses exponential
// backoff with jitter, observes Retry-After, and has a retry budget: during an outage, most calls are tried once. Calls
// that change something carry an idempotency key. Without an option of the caller the key is random, so that a lost
// response does not start an instance twice. A key must not have a comma, or a space at its start or end. An API of an
// earlier release may ignore the key of a note, a job or a run of a schedule. A call with a key of the caller then
// returns a *NoRouteError and has no effect. A call with a random key is made once, without the key.
//
// Calls such as Wait, WaitForStart and Update hold a request for up to 25 seconds and repeat it until ctx ends. Inputs
// have at most perdure.MaxPayloadBytes. The API does not return outputs over 1.5 MB (Status.EncodedOutput).
func Dial(endpoint string, opts ...DialOption) (*Client, error) {
	api, err := apiclient.Dial(endpoint, opts...)
	if err != nil {
		return nil, fmt.Errorf("client: dial: %w", err)
	}
	connection := &hub.Hub{
		Now: api.Now, Sleep: api.Sleep, Calls: clientcall.NewRunner(nil, api.Interceptors),
	}
	r := remote.New(api, connection)
	connection.TailReader = remote.NewTail(api)
	return &Client{
		hub: connection, ops: remote.Reader[Status, Pending]{Hub: r, Complete: completeStatus},
		schedules: remote.Schedules[ScheduleStatus]{Hub: r}, querier: r,
		attempts: remote.NewAttempts(r, publicTokenError), remote: true,
	}, nil
}

// completeStatus sets a status as Client returns it: the JSON of a missing custom status is null.
func completeStatus(s *Status) {
	if string(s.CustomStatus) == "null" {
		s.CustomStatus = nil
	}
}

// EndpointVariable is the environment variable that selects the transport of Open, and of admin.Open.
const EndpointVariable = apiclient.EndpointVariable

// Open returns a client of the HTTP API at the endpoint PERDURE_API if this environment variable is set. Otherwise it
// calls connect and returns a client of its Backend, with those of the options that are options of New:
//
//	c, err := client.Open(func() (client.Backend, error) { return dynamo.Open(ctx, "orders") })
func Open(connect func() (Backend, error), opts ...DialOption) (*Client, error) {
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" {
		return Dial(endpoint, opts...)
	}
	h, err := connect()
	if err != nil {
		return nil, fmt.Errorf("client: open: %w", err)
	}
	var direct []Option
	for _, opt := range opts {
		if o, ok := opt.(Option); ok {
			direct = append(direct, o)
		}
	}
	return New(h, direct...), nil
}

// requireProvider returns an error if the hub is remote.
func (c *Client) requireProvider(operation string) error {
	if !c.remote {
		return nil
	}
	return fmt.Errorf("client: %w", &NoRouteError{
		Operation: operation, Reason: "a payload store and a transaction need direct access",
	})
}
