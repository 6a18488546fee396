package perdure

import (
	"context"

	"github.com/perdure/perdure/history"
)

type traceParentKey struct{}

// WithTraceParent returns a context whose trace context is traceparent, as W3C Trace Context writes it in HTTP's header of that name. A
// text that is none, or too long, is left out, and the context returned as it came.
//
// A trace context travels: a client.Client sends that of the context with starts, events and cancels; the turns of the instance, the
// activities that they schedule and the orchestrations that they start have it in theirs. An Interceptor that puts another into the
// context that it passes on replaces it for all that follows. It is recorded in history, beside what was decided, and orchestrations cannot
// read it.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	t := history.ParseTraceParent(traceparent)
	if t == "" {
		return ctx
	}
	return context.WithValue(ctx, traceParentKey{}, string(t))
}

// TraceParentFrom returns the trace context of ctx, in the form of W3C version 00; empty where it has none.
func TraceParentFrom(ctx context.Context) string {
	t, _ := ctx.Value(traceParentKey{}).(string)
	return t
}
