package client

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// WithInterceptors adds interceptors whose ClientCall functions run around the calls that perdure.ClientCall names. The
// first interceptor is the outermost one. Interceptors of earlier options come before those of later ones. A panic of
// an interceptor is logged to slog.Default.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(o *options) { o.interceptors = append(o.interceptors, interceptors...) }
}

// call runs a call inside the interceptors.
func (c *Client) call(ctx context.Context, operation, instanceID, name string, do func(context.Context) error) error {
	return c.calls.Run(ctx, perdure.ClientCall{Operation: operation, InstanceID: instanceID, Name: name}, do)
}

// traceParentOf returns the trace context that a call sends.
func traceParentOf(ctx context.Context) history.TraceParent {
	return history.TraceParent(perdure.TraceParentFrom(ctx))
}
