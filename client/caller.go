package client

import (
	"cmp"
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// WithCaller sets the name that histories and jobs record as the requester (requestedBy) of calls whose context has
// none (CalledBy). The default is the identity of the provider's credentials, where it knows them: for dynamo.Open, STS
// is called once. An empty name means that the caller is not known, and avoids that call.
func WithCaller(name string) Option {
	return func(c *Client) { c.identify = func(context.Context) string { return name } }
}

// CalledBy returns a context for calls on behalf of name: the caller of a server that is built on a Client, as the
// server's own gateway has authenticated it. It takes precedence over WithCaller.
func CalledBy(ctx context.Context, name string) context.Context {
	return provider.WithRequester(ctx, name)
}

// Identifier is a Hub that knows whose credentials it has.
type Identifier interface {
	// Caller returns the IAM identity, empty where it is not known. It answers from memory except for the first call,
	// and never takes long.
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
