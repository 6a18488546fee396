package perdure

import (
	"context"

	"github.com/perdure/perdure/history"
)

type traceParentKey struct{}

// WithTraceParent returns a context with a W3C trace context, in the form of the HTTP header traceparent. If
// traceparent is invalid or too long, it returns ctx unchanged.
//
// A client.Client sends the trace context of its context with starts, events and cancels. The turns of the instance,
// its activities and its sub-orchestrations inherit it. An Interceptor can replace it in the context that it passes to
// next. The trace context is stored in the history, and orchestrations cannot read it.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	t := history.ParseTraceParent(traceparent)
	if t == "" {
		return ctx
	}
	return context.WithValue(ctx, traceParentKey{}, string(t))
}

// TraceParentFrom returns the trace context of ctx in the W3C format, version 00, or an empty string.
func TraceParentFrom(ctx context.Context) string {
	t, _ := ctx.Value(traceParentKey{}).(string)
	return t
}
