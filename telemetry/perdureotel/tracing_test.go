package perdureotel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/telemetry/perdureotel"
)

// recording returns a tracer provider with an exporter that stores its spans.
func recording() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(perdureotel.IDGenerator()),
		sdktrace.WithSpanProcessor(perdureotel.NewIDSpanProcessor()),
		sdktrace.WithSpanProcessor(perdureotel.NewEmptyTurnFilter(sdktrace.NewSimpleSpanProcessor(spans)))), spans
}

// orders returns a registry with an orchestration that waits for an event while an activity runs. The activity fails
// once.
func orders(inner trace.Tracer) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(ctx context.Context, _ int) (int, error) {
		_, span := inner.Start(ctx, "HTTP POST")
		span.End()
		if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
			return 0, errors.New("declined")
		}
		return 1, nil
	})
	perdure.AddOrchestration(r, "fulfil", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		charged := perdure.CallActivityByName[int](ctx, "charge", 1,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute}))
		if _, err := perdure.WaitForExternalEvent[int](ctx, "packed").Await(ctx); err != nil {
			return 0, err
		}
		return charged.Await(ctx)
	})
	return r
}

// attrs returns the attributes of a span as text.
func attrs(s tracetest.SpanStub) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// links returns the span IDs of the links of a span by the kind of the link.
func links(s tracetest.SpanStub) map[string][]trace.SpanID {
	m := map[string][]trace.SpanID{}
	for _, l := range s.Links {
		for _, a := range l.Attributes {
			m[a.Value.AsString()] = append(m[a.Value.AsString()], l.SpanContext.SpanID())
		}
	}
	return m
}

// named returns the n spans with a name.
func named(t *testing.T, all tracetest.SpanStubs, name string, n int) []tracetest.SpanStub {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(all), func(s tracetest.SpanStub) bool { return s.Name != name })
	if len(found) != n {
		t.Fatalf("got %d spans %q, want %d", len(found), name, n)
	}
	return found
}

// fulfilled runs an order and returns its spans.
func fulfilled(t *testing.T, opts ...perduretest.Option) tracetest.SpanStubs {
	t.Helper()
	tp, spans := recording()
	env := perduretest.New(t, orders(tp.Tracer("inner")),
		append(opts, perduretest.WithInterceptors(perdureotel.New(tp).Interceptor()))...)
	ctx := t.Context()
	id, err := env.Client().Start(ctx, "fulfil", 1, client.WithInstanceID("order-7"))
	if err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	if err := env.Client().RaiseEvent(ctx, id, "packed", 1); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	if s, err := env.Client().Wait(ctx, id); err != nil || s.Status != client.StatusCompleted {
		t.Fatalf("got %+v, error %v", s, err)
	}
	return spans.GetSpans()
}

// Each turn has its own trace, with links to its causes. Attempts are in the trace of the turn that scheduled them. All
// spans have the IDs of the instance.
func TestSpans_ofAnOrchestration_haveExpectedTracesAndLinks(t *testing.T) {
	t.Parallel()
	all := fulfilled(t)
	start, raise := named(t, all, "Start fulfil", 1)[0], named(t, all, "Raise packed", 1)[0]
	turns, attempts := named(t, all, "turn fulfil", 3), named(t, all, "activity charge", 2)
	seen := map[trace.TraceID]bool{start.SpanContext.TraceID(): true, raise.SpanContext.TraceID(): true}
	for i, turn := range turns {
		if turn.Parent.IsValid() || seen[turn.SpanContext.TraceID()] {
			t.Errorf("turn %d: want a separate trace", i+1)
		}
		seen[turn.SpanContext.TraceID()] = true
		if a := attrs(turn); a["perdure.turn.sequence"] != fmt.Sprint(i+1) || a["perdure.turn.committed"] != "true" ||
			a["messaging.system"] != "aws_sqs" || a["perdure.orchestration.name"] != "fulfil" {
			t.Errorf("turn %d: got attributes %v", i+1, a)
		}
	}
	began, packed := start.SpanContext.SpanID(), named(t, all, "external event packed", 1)[0]
	if packed.Parent.SpanID() != turns[0].SpanContext.SpanID() ||
		packed.SpanContext.TraceID() != turns[0].SpanContext.TraceID() {
		t.Errorf("parent of the wait: got %s", packed.Parent.SpanID())
	}
	for i, want := range []map[string][]trace.SpanID{
		{"start": {began}},
		{
			"start": {began}, "message": {raise.SpanContext.SpanID()}, "previous": {turns[0].SpanContext.SpanID()},
			"ended": {packed.SpanContext.SpanID()},
		},
		{"start": {began}, "previous": {turns[1].SpanContext.SpanID()}, "awaited": {turns[0].SpanContext.SpanID()}},
	} {
		if got := links(turns[i]); !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("turn %d: got links to %v, want %v", i+1, got, want)
		}
	}
	for i, a := range attempts {
		if a.Parent.SpanID() != turns[0].SpanContext.SpanID() ||
			a.SpanContext.TraceID() != turns[0].SpanContext.TraceID() {
			t.Errorf("attempt %d: got parent %s", i+1, a.Parent.SpanID())
		}
		if got := attrs(a); got["perdure.activity.attempt"] != fmt.Sprint(i+1) ||
			got["messaging.destination.name"] != "default" {
			t.Errorf("attempt %d: got attributes %v", i+1, got)
		}
	}
	if first := attempts[0]; first.Status.Code != codes.Error || first.Status.Description != "declined" ||
		attrs(first)["error.type"] != "error" || attempts[1].Status.Code == codes.Error {
		t.Errorf("got attempt statuses %+v, %+v", first.Status, attempts[1].Status)
	}
	execution := attrs(turns[0])["perdure.execution.id"]
	for _, s := range all {
		a := attrs(s)
		if client := s.SpanKind == trace.SpanKindProducer; a["perdure.instance.id"] != "order-7" ||
			!client && (a["perdure.execution.id"] != execution || execution == "") {
			t.Errorf("%s: got attributes %v", s.Name, a)
		}
	}
	for i, s := range named(t, all, "HTTP POST", 2) {
		if s.Parent.SpanID() != attempts[i].SpanContext.SpanID() ||
			s.SpanContext.SpanID() == attempts[i].SpanContext.SpanID() ||
			attrs(s)["perdure.activity.id"] != attrs(attempts[i])["perdure.activity.id"] {
			t.Errorf("call in an attempt: got parent %s, attributes %v", s.Parent.SpanID(), attrs(s))
		}
	}
}

// Every attribute of a span is documented, and every documented attribute occurs.
func TestAttributes_documented_areThoseOfTheSpans(t *testing.T) {
	t.Parallel()
	// this test has no Lambda, and AttrTasksOmitted has its own test
	had := map[attribute.Key]bool{"faas.invocation_id": true, perdureotel.AttrTasksOmitted: true}
	for _, s := range append(fulfilled(t), waited(t)...) {
		for _, a := range s.Attributes {
			had[a.Key] = true
		}
		for _, l := range s.Links {
			for _, a := range l.Attributes {
				had[a.Key] = true
			}
		}
	}
	documented := map[attribute.Key]bool{}
	for _, a := range perdureotel.Attributes() {
		documented[a.Key] = true
	}
	if !maps.Equal(had, documented) {
		t.Errorf("got attributes %v, want the documented %v", slices.Sorted(maps.Keys(had)),
			slices.Sorted(maps.Keys(documented)))
	}
}

// If another process repeats a turn, the span of the turn and the spans of its activities have the same IDs.
func TestTurnSpan_repeatedTurn_hasTheSameIDs(t *testing.T) {
	t.Parallel()
	var traceparents []string
	for range 2 {
		tp, spans := recording()
		i := perdureotel.New(tp).Interceptor()
		i.Turn(t.Context(), perdure.TurnInfo{InstanceID: "order-7", ExecutionID: "01J", Name: "fulfil", Sequence: 3},
			func(ctx context.Context) perdure.TurnResult {
				traceparents = append(traceparents, perdure.TraceParentFrom(ctx))
				i.Activity(ctx,
					perdure.ActivityInfo{
						InstanceID: "order-7", ExecutionID: "01J", ActivityID: 4, Attempt: 1, DeliveryCount: 1,
					}, func(ctx context.Context) perdure.ActivityResult {
						traceparents = append(traceparents, perdure.TraceParentFrom(ctx))
						return perdure.ActivityResult{}
					})
				return perdure.TurnResult{Err: errors.New("a conflict")}
			})
		if s := named(t, spans.GetSpans(), "turn fulfil", 1)[0]; s.Status.Code != codes.Error ||
			attrs(s)["perdure.turn.committed"] != "false" {
			t.Errorf("got status %+v, attributes %v", s.Status, attrs(s))
		}
	}
	if traceparents[0] != traceparents[2] || traceparents[1] != traceparents[3] || traceparents[0] == traceparents[1] ||
		traceparents[0] == "" {
		t.Errorf("got ids %q", traceparents)
	}
}

// With WithoutErrorTexts, spans have only the types of errors.
func TestWithoutErrorTexts_failedCall_omitsErrorText(t *testing.T) {
	t.Parallel()
	tp, spans := recording()
	perdureotel.New(tp, perdureotel.WithoutErrorTexts()).Interceptor().ClientCall(t.Context(),
		perdure.ClientCall{Operation: "Purge"}, func(context.Context) error {
			return errors.New("secret")
		})
	if s := spans.GetSpans()[0]; s.Status.Code != codes.Error || strings.Contains(fmt.Sprint(s), "secret") {
		t.Errorf("got %+v", s)
	}
}

// The parent of a client call is the span in its context, or else the trace context of its request.
func TestClientCallSpan_contextHasTraceParent_isItsChild(t *testing.T) {
	t.Parallel()
	const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	tp, spans := recording()
	i := perdureotel.New(tp).Interceptor()
	var sent string
	i.ClientCall(perdure.WithTraceParent(t.Context(), traced),
		perdure.ClientCall{Operation: "Cancel", InstanceID: "order-7"}, func(ctx context.Context) error {
			sent = perdure.TraceParentFrom(ctx)
			return nil
		})
	s := spans.GetSpans()[0]
	if s.Parent.SpanID().String() != "00f067aa0ba902b7" || !strings.Contains(sent, s.SpanContext.SpanID().String()) {
		t.Errorf("got parent %s, sent trace parent %s", s.Parent.SpanID(), sent)
	}
}

// Spans are exported by OTLP before an invocation ends. An invocation also ends if the collector hangs.
func TestMiddleware_exportsSpansBeforeInvocationEnds(t *testing.T) {
	exported := atomic.Int64{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			exported.Add(1)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tp, err := perdureotel.NewTracerProvider(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tracing := perdureotel.New(tp)
	handler := tracing.Middleware(invoked(func(ctx context.Context, payload []byte) ([]byte, error) {
		tracing.Interceptor().ClientCall(ctx, perdure.ClientCall{Operation: "Cancel"}, func(context.Context) error {
			return nil
		})
		return payload, nil
	}))
	if response, err := handler.Invoke(t.Context(), []byte("it")); err != nil || string(response) != "it" ||
		exported.Load() != 1 {
		t.Errorf("got %s, error %v, after %d exports", response, err, exported.Load())
	}

	hanging := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hanging }))
	defer stuck.Close()
	defer close(hanging)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", stuck.URL)
	if tp, err = perdureotel.NewTracerProvider(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracing = perdureotel.New(tp)
	handler = tracing.Middleware(invoked(func(ctx context.Context, payload []byte) ([]byte, error) {
		tracing.Interceptor().ClientCall(ctx, perdure.ClientCall{Operation: "Cancel"}, func(context.Context) error {
			return nil
		})
		return payload, nil
	}))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if response, err := handler.Invoke(ctx, []byte("it")); err != nil || string(response) != "it" || ctx.Err() != nil {
		t.Errorf("got %s, error %v, context error %v", response, err, ctx.Err())
	}
}

// invoked is a function that implements a handler.
type invoked func(ctx context.Context, payload []byte) ([]byte, error)

func (i invoked) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return i(ctx, payload) }

func TestLogHandler_contextHasSpan_addsItsIDs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(perdureotel.NewLogHandler(slog.NewJSONHandler(&b, nil))).With("a", 1)
	tp, _ := recording()
	ctx, span := tp.Tracer("it").Start(t.Context(), "it")
	defer span.End()
	log.InfoContext(ctx, "within")
	log.InfoContext(t.Context(), "without")
	lines := strings.Split(b.String(), "\n")
	if !strings.Contains(lines[0],
		`"trace_id":"`+span.SpanContext().TraceID().String()+`","span_id":"`+span.SpanContext().SpanID().String()+
			`"`) || strings.Contains(lines[1], "trace_id") {
		t.Errorf("got lines %q", lines)
	}
}
