// Package perdureotel traces a task hub with OpenTelemetry: a span for each turn, for each run of an activity, for what an orchestration waits for, and for each
// client call, by a perdure.Interceptor.
//
// Each turn is a trace of its own, with links to what led to it: the start, the messages that it takes, the turn before, and the turns that
// scheduled what it comes back to. An orchestration may wait for weeks, and no trace stays open for so long. Activities are spans in the trace of the
// turn that scheduled them, and so is what is waited for: a timer, an external event, another orchestration or instance has a span from its begin to its end, made
// when it has ended. The ids of turns, activities and waits derive from the execution, so that a turn that is repeated has the ids that
// it had, and links need nothing stored. Since not every viewer draws links, every span has the ids of its instance and execution as attributes.
//
//	tp, err := perdureotel.NewTracerProvider(ctx)
//	tracing := perdureotel.New(tp)
//	f, err := lambdahandler.NewWorker(ctx, registry,
//		lambdahandler.WithInterceptors(tracing.Interceptor()), lambdahandler.WithMiddleware(tracing.Middleware))
//
// Spans are exported by OTLP over HTTP, by default to the collector of the AWS Distro for OpenTelemetry's Lambda layer on localhost:4318;
// the variables OTEL_EXPORTER_OTLP_… and OTEL_TRACES_SAMPLER… have their usual meaning.
package perdureotel
