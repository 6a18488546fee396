package client

import (
	"cmp"
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/provider"
)

// WithCaller sets the caller's name, which histories record as requestedBy. ContextWithCaller overrides it for a single
// call. The default is the IAM identity of the provider's credentials if the provider knows it. A provider from
// dynamo.Open calls STS once to get the identity. An empty name means that the caller is unknown and avoids this call.
func WithCaller(name string) Option {
	return func(o *options) { o.identify = clientcall.Fixed(name) }
}

// ContextWithCaller returns a context that sets the caller's name for calls made with it. Use it in a server that
// authenticates its own users and calls the hub on their behalf. It overrides WithCaller and admin.WithCaller.
func ContextWithCaller(ctx context.Context, name string) context.Context {
	return provider.WithRequester(ctx, name)
}

// CallerIdentifier is a Backend that knows the IAM identity of its credentials.
type CallerIdentifier = clientcall.Identifier

// cancelRequester returns the name of the caller for cancellations. The history records a requester for every
// cancellation.
func (c *Client) cancelRequester(ctx context.Context) string {
	return cmp.Or(c.hub.Calls.Caller(ctx), history.RequestedByClient)
}
