package perdureotel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// ids are the IDs of a span. They derive from the turn, run or task, so a repetition has the same IDs in any process.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// idsOf derives IDs from parts. The probability of a zero ID is 2^-64, and the SDK then drops the span.
func idsOf(parts ...any) (d ids) {
	h := sha256.New()
	for _, p := range parts {
		s := fmt.Sprint(p)
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	sum := h.Sum(nil)
	copy(d.trace[:], sum)
	copy(d.span[:], sum[len(d.trace):])
	return d
}

// turnIDs returns the IDs of a turn, which is a separate trace.
func turnIDs(executionID string, sequence int64) ids { return idsOf("turn", executionID, sequence) }

// activityIDs returns the IDs of one run of an activity's code: a delivery of an attempt.
func activityIDs(executionID string, activityID int64, attempt, delivery int) ids {
	return idsOf("activity", executionID, activityID, attempt, delivery)
}

// taskIDs returns the IDs of a task. If the turn that scheduled the task is traced, the task is in its trace.
func taskIDs(executionID string, id int64) ids { return idsOf("task", executionID, id) }

// linked returns the context of a span that other spans link to.
func (d ids) linked() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: d.trace, SpanID: d.span, TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

type idsKey struct{}

// withIDs returns a context whose next span gets the IDs.
func withIDs(ctx context.Context, d ids) context.Context { return context.WithValue(ctx, idsKey{}, d) }

// IDGenerator returns a generator that gives the spans of this package deterministic IDs and all other spans random
// IDs. A tracer provider that NewTracerProvider did not create needs it. Otherwise the links between turns point to
// spans that do not exist.
func IDGenerator() sdktrace.IDGenerator { return generator{} }

type generator struct{}

// NewIDs implements sdktrace.IDGenerator.
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if d, ok := ctx.Value(idsKey{}).(ids); ok {
		return d.trace, d.span
	}
	d := ids{}
	_, _ = rand.Read(d.trace[:]) // never fails
	_, _ = rand.Read(d.span[:])
	return d.trace, d.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (g generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := g.NewIDs(ctx)
	return span
}
