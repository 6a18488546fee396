package perdureotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure"
)

const (
	// mostTasks bounds the spans of what ends in one turn. A batch processor has room for 2,048 spans by default, and
	// drops what is more.
	mostTasks = 1000
	// mostTaskLinks bounds the links from a turn to what has ended in it: a span keeps 128 links by default.
	mostTaskLinks = 32
)

// taskNames are what the spans of tasks are called, before the task's own name. Activities have spans of their
// attempts, and a handler of an update is no wait.
var taskNames = map[perdure.TaskKind]string{
	perdure.TaskTimer: "timer", perdure.TaskExternalEvent: "external event",
	perdure.TaskSubOrchestration: "sub-orchestration",
	perdure.TaskSentEvent:        "sent event", perdure.TaskSentUpdate: "sent update",
}

// tasks makes spans of what a turn has waited for, now that it has ended. ctx has the span of that turn.
func (t *Tracing) tasks(ctx context.Context, told perdure.TurnTasks) {
	turn, made := trace.SpanFromContext(ctx), 0
	for i := range told.Ended {
		x := &told.Ended[i]
		if taskNames[x.Kind] == "" {
			continue
		}
		if made++; made > mostTasks {
			continue
		}
		span := t.task(ctx, &told, x)
		if made <= mostTaskLinks && span.IsSampled() {
			turn.AddLink(trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{AttrLink.String("ended")}})
		}
	}
	if made > mostTasks {
		turn.SetAttributes(AttrTasksOmitted.Int(made - mostTasks))
	}
}

// task makes the span of a task, from its begin to its end: a child of the turn that began it, where that was traced.
func (t *Tracing) task(ctx context.Context, told *perdure.TurnTasks, x *perdure.TaskInfo) trace.SpanContext {
	about := []attribute.KeyValue{AttrInstance.String(told.InstanceID), AttrExecution.String(told.ExecutionID)}
	attrs := []attribute.KeyValue{
		AttrTask.Int64(x.ID), AttrTaskKind.String(string(x.Kind)), AttrTaskOutcome.String(string(x.Outcome)),
		AttrTaskEndedIn.Int64(told.Sequence),
	}
	for key, text := range map[attribute.Key]string{
		AttrTaskName: x.Name, AttrTaskInstance: x.InstanceID, AttrTaskReason: x.Reason,
	} {
		if text != "" {
			attrs = append(attrs, key.String(text))
		}
	}
	parent := parse(x.TraceParent)
	opts := []trace.SpanStartOption{
		trace.WithTimestamp(x.ScheduledAt), trace.WithAttributes(attrs...), trace.WithSpanKind(trace.SpanKindInternal),
	}
	if !parent.IsValid() {
		opts = append(opts, trace.WithNewRoot())
	}
	_, span := t.start(trace.ContextWithRemoteSpanContext(ctx, parent), taskIDs(told.ExecutionID, x.ID), about,
		strings.TrimSpace(taskNames[x.Kind]+" "+x.Name), opts...)
	t.fail(span, x.Failure)
	span.End(trace.WithTimestamp(x.EndedAt))
	return span.SpanContext()
}
