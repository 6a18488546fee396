package admin

import (
	"errors"
	"fmt"
	"os"

	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/clientcall"
)

// DialOption is an option of Dial and Open: those of client.Dial, and WithClock, WithSleep and WithInterceptors of this
// package.
type DialOption = apiclient.Option

// NoRouteError reports an operation, or an option of an operation, that the HTTP API does not have. An API of an
// earlier release may lack an option. It is an errors.ErrUnsupported.
type NoRouteError = apiclient.NoRouteError

// ApplyDial implements DialOption. It returns an error for WithCaller, because the API sets the caller.
func (o Option) ApplyDial(c *apiclient.Config) error {
	set := options{}
	if o(&set); set.identify != nil {
		return errors.New("WithCaller requires New: the HTTP API sets the caller")
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

// Dial returns a client that operates the hub whose HTTP API is at an endpoint. It makes no requests. client.Dial
// describes the endpoint, the options, the caller and the repetition of requests.
//
// Reconcile, PurgeQueues and SweepPayloads return a *NoRouteError. Dead letters of a list have no body, except those
// that DeadLetterQuery.IDs selects. A call searches a queue for up to 12 seconds at a time.
func Dial(endpoint string, opts ...DialOption) (*Client, error) {
	api, err := apiclient.Dial(endpoint, opts...)
	if err != nil {
		return nil, fmt.Errorf("admin: dial: %w", err)
	}
	calls := clientcall.NewRunner(nil, api.Interceptors)
	return &Client{ops: &remote{api}, now: api.Now, sleep: api.Sleep, calls: calls}, nil
}

// Open returns a client of the HTTP API at the endpoint PERDURE_API (client.EndpointVariable) if this environment
// variable is set. Otherwise it calls connect and returns a client of its Backend, with those of the options that are
// options of New in this package:
//
//	a, err := admin.Open(func() (admin.Backend, error) { return dynamo.Open(ctx, "orders") })
//
// Open returns the errors of Dial and connect. Options of package client, such as client.WithClock, configure only a
// client of the HTTP API.
func Open(connect func() (Backend, error), opts ...DialOption) (*Client, error) {
	if endpoint := os.Getenv(apiclient.EndpointVariable); endpoint != "" {
		return Dial(endpoint, opts...)
	}
	h, err := connect()
	if err != nil {
		return nil, fmt.Errorf("admin: open: %w", err)
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
	if c.hub != nil {
		return nil
	}
	return fmt.Errorf("admin: %w", &NoRouteError{
		Operation: operation, Reason: "it needs permissions that the API does not have",
	})
}
