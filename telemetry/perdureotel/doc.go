// Package perdureotel traces a task hub with OpenTelemetry. A perdure.Interceptor creates spans for turns, activities,
// waits and client calls.
//
//	tp, err := perdureotel.NewTracerProvider(ctx)
//	if err != nil {
//		return err
//	}
//	tracing := perdureotel.New(tp)
//	f, err := lambdahandler.NewWorker(ctx, registry,
//		lambdahandler.WithInterceptors(tracing.Interceptor()), lambdahandler.WithMiddleware(tracing.Middleware))
//
// Spans are exported with OTLP over HTTP, by default to localhost:4318, where the Lambda layer of the AWS Distro for
// OpenTelemetry listens. The environment variables OTEL_EXPORTER_OTLP_… and OTEL_TRACES_SAMPLER… have their usual
// meaning.
//
// Each turn is a separate trace. It has links to the start, to the senders of its messages, to the previous turn, and
// to the turns that scheduled the tasks whose results arrived. Activities and waits are spans in the trace of the turn
// that scheduled them. A wait is a timer, an external event, a sub-orchestration, or an event or update that was sent.
// Its span is created when the wait has ended. Every span has the IDs of its instance and execution as attributes.
//
// See docs/operate/telemetry.md.
package perdureotel
