package perdureotel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// scope is the name of the instrumentation.
const scope = "github.com/perdure/perdure/telemetry/perdureotel"

// Tracing creates spans. It is safe for concurrent use.
type Tracing struct {
	provider   trace.TracerProvider
	tracer     trace.Tracer
	errorTexts bool
	waits      bool
}

// Option configures a Tracing.
type Option func(*Tracing)

// WithoutErrorTexts excludes the messages of failures and errors from spans. Spans then have only the error's type.
func WithoutErrorTexts() Option { return func(t *Tracing) { t.errorTexts = false } }

// WithoutTaskSpans disables the spans of waits. It also saves memory, because the engine then does not keep the waits
// of each instance.
func WithoutTaskSpans() Option { return func(t *Tracing) { t.waits = false } }

// New returns a Tracing that creates spans with tp. tp must use IDGenerator, like the provider of NewTracerProvider.
func New(tp trace.TracerProvider, opts ...Option) *Tracing {
	t := &Tracing{provider: tp, tracer: tp.Tracer(scope), errorTexts: true, waits: true}
	for _, opt := range opts {
		opt(t)
	}
	return t
}

// Interceptor returns an interceptor that creates spans for turns, waits, activities and client calls.
func (t *Tracing) Interceptor() perdure.Interceptor {
	i := perdure.Interceptor{Turn: t.turn, Activity: t.activity, ClientCall: t.call}
	if t.waits {
		i.OnTasks = t.tasks
	}
	return i
}

func (t *Tracing) turn(ctx context.Context, info perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
	about := []attribute.KeyValue{AttrInstance.String(info.InstanceID), AttrExecution.String(info.ExecutionID)}
	attrs := append(messaging("process", "turn"),
		AttrName.String(info.Name), AttrSequence.Int64(info.Sequence), AttrReplayed.Bool(info.Replayed),
		attrMessagingCount.Int(info.MessageCount))
	if info.Version != "" {
		attrs = append(attrs, AttrVersion.String(info.Version))
	}
	ctx, span := t.start(ctx, turnIDs(info.ExecutionID, info.Sequence), about, "turn "+info.Name,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(append(attrs, invocationOf(ctx)...)...), trace.WithLinks(linksOf(ctx, &info)...))
	defer span.End()

	r := next(propagate(ctx, span))
	span.SetAttributes(AttrCommitted.Bool(r.Committed))
	if r.Committed {
		span.SetAttributes(AttrEvents.Int(r.EventCount), AttrStatus.String(string(r.Status)))
	}
	t.fail(span, r.Failure)
	t.failed(span, r.Err)
}

func (t *Tracing) activity(
	ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
) {
	about := []attribute.KeyValue{
		AttrInstance.String(a.InstanceID), AttrExecution.String(a.ExecutionID), AttrActivity.Int64(a.ActivityID),
	}
	attrs := append(messaging("process", "activity"),
		AttrActivityName.String(a.Name), AttrAttempt.Int(a.Attempt), AttrDelivery.Int(a.DeliveryCount),
		attrMessagingDestination.String(a.Queue))
	ctx, span := t.start(inTraceParent(ctx), activityIDs(a.ExecutionID, a.ActivityID, a.Attempt, a.DeliveryCount),
		about, "activity "+a.Name,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(append(attrs, invocationOf(ctx)...)...))
	defer span.End()
	t.fail(span, next(propagate(ctx, span)).Failure)
}

func (t *Tracing) call(ctx context.Context, c perdure.ClientCall, next func(context.Context) error) {
	attrs := messaging("send", c.Operation)
	if c.InstanceID != "" {
		attrs = append(attrs, AttrInstance.String(c.InstanceID))
	}
	switch c.Operation {
	case "Start":
		attrs = append(attrs, AttrName.String(c.Name))
	case "Raise":
		attrs = append(attrs, AttrEventName.String(c.Name))
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = inTraceParent(ctx)
	}
	ctx, span := t.tracer.Start(ctx, strings.TrimSpace(c.Operation+" "+c.Name),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs...))
	defer span.End()
	t.failed(span, next(propagate(ctx, span)))
}

// start starts a span with IDs. Spans that are started in its context have their own IDs and the attributes about.
func (t *Tracing) start(
	ctx context.Context, d ids, about []attribute.KeyValue, name string, opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	ctx = context.WithValue(ctx, aboutKey{}, about)
	opts = append(opts, trace.WithAttributes(about...))
	_, span := t.tracer.Start(withIDs(ctx, d), name, opts...) //nolint:spancheck // the caller ends the span
	return trace.ContextWithSpan(ctx, span), span             //nolint:spancheck // the same
}

// fail records a failure of a turn, an activity or a task.
func (t *Tracing) fail(span trace.Span, f *history.Failure) {
	if f != nil {
		t.setError(span, f.Type, f.Message)
	}
}

func (t *Tracing) failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	name := reflect.TypeOf(err)
	for name.Kind() == reflect.Pointer {
		name = name.Elem()
	}
	t.setError(span, name.String(), err.Error())
}

func (t *Tracing) setError(span trace.Span, kind, text string) {
	span.SetAttributes(attrErrorType.String(kind))
	if !t.errorTexts {
		text = kind
	}
	span.SetStatus(codes.Error, text)
}

// linksOf returns the links of a turn. ctx has the trace context of the instance's start.
func linksOf(ctx context.Context, info *perdure.TurnInfo) (links []trace.Link) {
	add := func(to trace.SpanContext, what string) {
		if to.IsValid() {
			links = append(links, trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{AttrLink.String(what)}})
		}
	}
	start := perdure.TraceParentFrom(ctx)
	add(parse(start), "start")
	for _, t := range info.TraceParents {
		if t != start {
			add(parse(t), "message")
		}
	}
	if info.Sequence > 1 {
		add(turnIDs(info.ExecutionID, info.Sequence-1).linked(), "previous")
	}
	for _, sequence := range info.ScheduledByTurns {
		if sequence > 0 && sequence != info.Sequence-1 {
			add(turnIDs(info.ExecutionID, sequence).linked(), "awaited")
		}
	}
	return links
}

// parse parses a result of perdure.TraceParentFrom. The span context of an empty one is invalid.
func parse(traceparent string) trace.SpanContext {
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 {
		return trace.SpanContext{}
	}
	traceID, err := trace.TraceIDFromHex(parts[1])
	spanID, err2 := trace.SpanIDFromHex(parts[2])
	flags, err3 := hex.DecodeString(parts[3])
	if errors.Join(err, err2, err3) != nil || len(flags) != 1 {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags[0]), Remote: true,
	})
}

// inTraceParent makes the next span a child of the propagated trace context, if there is one.
func inTraceParent(ctx context.Context) context.Context {
	if parent := parse(perdure.TraceParentFrom(ctx)); parent.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

// propagate adds a span's trace context to the messages that are sent in ctx.
func propagate(ctx context.Context, span trace.Span) context.Context {
	s := span.SpanContext()
	return perdure.WithTraceParent(ctx, fmt.Sprintf("00-%s-%s-%s", s.TraceID(), s.SpanID(), s.TraceFlags()))
}

func invocationOf(ctx context.Context) []attribute.KeyValue {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return []attribute.KeyValue{attrInvocation.String(lc.AwsRequestID)}
	}
	return nil
}
