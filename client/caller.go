package client

import (
	"cmp"
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// WithCaller sets the caller's name, which histories and jobs record as requestedBy. ContextWithCaller overrides it for a single
// call. The default is the IAM identity of the provider's credentials if the provider knows it. A provider from
// dynamo.Open calls STS once to find out. An empty name means that the caller is unknown and avoids this call.
func WithCaller(name string) Option {
	return func(c *Client) { c.identify = func(context.Context) string { return name } }
}

// ContextWithCaller returns a context that sets the caller's name for calls made with it. Use it in a server that authenticates
// its own users and calls the hub on their behalf. It overrides WithCaller.
func ContextWithCaller(ctx context.Context, name string) context.Context {
	return provider.WithRequester(ctx, name)
}

// CallerIdentifier is a Backend that knows the IAM identity of its credentials.
type CallerIdentifier interface {
	// Caller returns the IAM identity, or an empty string if it is unknown. Only the first call may make a request.
	Caller(ctx context.Context) string
}

// caller returns on whose behalf a call is made; empty where that is not known.
func (c *Client) caller(ctx context.Context) string {
	if name, known := provider.RequesterOf(ctx); known {
		return history.Requester(name)
	}
	if c.identify == nil {
		return ""
	}
	return history.Requester(c.identify(ctx))
}

// decider is caller for cancellations, for which history always records a requester.
func (c *Client) decider(ctx context.Context) string {
	return cmp.Or(c.caller(ctx), history.RequestedByClient)
}
