package client

import (
	"cmp"
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// WithCaller sets who calls, as histories and jobs have it (requestedBy) where a context says nothing of it (CalledBy). The default is the identity of
// the provider's credentials, where it knows them: that of dynamo.Open asks STS once. Empty is that nobody knows, and nobody is asked.
func WithCaller(name string) Option {
	return func(c *Client) { c.identify = func(context.Context) string { return name } }
}

// CalledBy returns a context of calls on behalf of somebody: of whoever has called a server that is made of a Client, as its own gateway
// authenticated them. It goes before WithCaller.
func CalledBy(ctx context.Context, name string) context.Context {
	return provider.WithRequester(ctx, name)
}

// identifier is what a provider may implement to tell whose credentials it has: empty where that cannot be told. It answers from memory but
// for the first call, and never takes long.
type identifier interface {
	Caller(ctx context.Context) string
}

// caller is who asks for a call; empty where nobody knows.
func (c *Client) caller(ctx context.Context) string {
	if name, known := provider.RequesterOf(ctx); known {
		return history.Requester(name)
	}
	if c.identify == nil {
		return ""
	}
	return history.Requester(c.identify(ctx))
}

// decider is who asks for a cancellation: history has never been without.
func (c *Client) decider(ctx context.Context) string {
	return cmp.Or(c.caller(ctx), history.RequestedByClient)
}
