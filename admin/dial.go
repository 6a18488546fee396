package admin

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/clientcall"
)

// DialOption is an option of Dial: those of client.Dial, and WithClock, WithSleep and WithInterceptors of this package.
type DialOption = apiclient.Option

// NoRouteError reports an operation that the HTTP API does not have. It is an errors.ErrUnsupported.
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

// requireProvider returns an error if the hub is remote.
func (c *Client) requireProvider(operation string) error {
	if c.hub != nil {
		return nil
	}
	return fmt.Errorf("admin: %w", &NoRouteError{
		Operation: operation, Reason: "it needs permissions that the API does not have",
	})
}
