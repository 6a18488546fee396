package perdureotel

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure/internal/logevent"
)

// NewTracerProvider returns a tracer provider that exports with OTLP over HTTP to OTEL_EXPORTER_OTLP_ENDPOINT, by
// default localhost:4318. It uses IDGenerator, NewIDSpanProcessor and NewEmptyTurnFilter. OTEL_SERVICE_NAME is the name
// of the service. opts are applied after its own options. NewTracerProvider makes no calls. Shutdown of the provider
// exports the remaining spans.
func NewTracerProvider(ctx context.Context, opts ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, error) {
	var where []otlptracehttp.Option
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		where = append(where, otlptracehttp.WithEndpointURL("http://localhost:4318"))
	}
	exporter, err := otlptracehttp.New(ctx, where...)
	if err != nil {
		return nil, fmt.Errorf("perdureotel: %w", err)
	}
	own := []sdktrace.TracerProviderOption{
		sdktrace.WithIDGenerator(IDGenerator()), sdktrace.WithSpanProcessor(NewIDSpanProcessor()),
		sdktrace.WithSpanProcessor(NewEmptyTurnFilter(sdktrace.NewBatchSpanProcessor(exporter))),
	}
	return sdktrace.NewTracerProvider(append(own, opts...)...), nil
}

// flushLimit is the maximum duration of an export. An unreachable collector must not make an invocation time out.
const flushLimit = 2 * time.Second

// Middleware exports the spans of an invocation before the invocation ends, because Lambda then freezes the process.
// Pass it to lambdahandler.WithMiddleware. The export takes at most two seconds, and at most half of the remaining time
// of the invocation. A failed export is logged and does not fail the invocation.
func (t *Tracing) Middleware(next lambda.Handler) lambda.Handler { return flushing{next, t} }

type flushing struct {
	next    lambda.Handler
	tracing *Tracing
}

// Invoke implements lambda.Handler.
func (f flushing) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer f.tracing.flush(ctx)
	return f.next.Invoke(ctx, payload) //nolint:wrapcheck // middleware passes on
}

func (t *Tracing) flush(ctx context.Context) {
	tp, ok := t.provider.(interface {
		ForceFlush(ctx context.Context) error
	})
	if !ok {
		return
	}
	limit := flushLimit
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2) //nolint:forbidigo // of an invocation: by the clock of the machine
	}
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	if err := tp.ForceFlush(limited); err != nil {
		slog.WarnContext(ctx, "span export failed", "event", logevent.SpanExportFailed, "error", err)
	}
}

type aboutKey struct{}

// NewIDSpanProcessor returns a processor that adds the IDs of instance, execution and activity to every span that is
// started in a turn or an activity, such as the spans of the AWS SDK.
func NewIDSpanProcessor() sdktrace.SpanProcessor { return processor{} }

type processor struct{}

// OnStart implements sdktrace.SpanProcessor.
func (processor) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	if about, ok := ctx.Value(aboutKey{}).([]attribute.KeyValue); ok {
		s.SetAttributes(about...)
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (processor) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown implements sdktrace.SpanProcessor.
func (processor) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (processor) ForceFlush(context.Context) error { return nil }

// NewEmptyTurnFilter returns a processor that passes all spans to next, except spans of turns that were not committed
// and did not fail. Such turns had no relevant messages or were retried immediately, and have the same IDs as the next
// turn.
func NewEmptyTurnFilter(next sdktrace.SpanProcessor) sdktrace.SpanProcessor {
	return withoutEmpty{next}
}

type withoutEmpty struct{ sdktrace.SpanProcessor }

// OnEnd implements sdktrace.SpanProcessor.
func (p withoutEmpty) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.Status().Code != codes.Error && slices.Contains(s.Attributes(), AttrCommitted.Bool(false)) {
		return
	}
	p.SpanProcessor.OnEnd(s)
}

// NewLogHandler returns a slog.Handler that adds trace_id and span_id to records whose context has a span. Use it in
// the logger of lambdahandler.WithLogger.
func NewLogHandler(inner slog.Handler) slog.Handler { return handler{inner} }

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // a handler passes on
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
