package perdureotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure"
)

const (
	// maxTasks limits the task spans of one turn. A batch processor buffers 2,048 spans by default and drops the rest.
	maxTasks = 1000
	// maxTaskLinks limits the links from a turn to the tasks that ended in it. A span has at most 128 links by default.
	maxTaskLinks = 32
)

// taskNames are the prefixes of the names of task spans. Activities have spans of their attempts instead, and an update
// handler is not a wait.
var taskNames = map[perdure.TaskKind]string{
	perdure.TaskTimer: "timer", perdure.TaskExternalEvent: "external event",
	perdure.TaskSubOrchestration: "sub-orchestration",
	perdure.TaskSentEvent:        "sent event", perdure.TaskSentUpdate: "sent update",
}

// tasks creates the spans of the tasks that ended in a turn. ctx has the span of the turn.
func (t *Tracing) tasks(ctx context.Context, all perdure.TurnTasks) {
	turn, created := trace.SpanFromContext(ctx), 0
	for i := range all.Ended {
		x := &all.Ended[i]
		if taskNames[x.Kind] == "" {
			continue
		}
		if created++; created > maxTasks {
			continue
		}
		span := t.task(ctx, &all, x)
		if created <= maxTaskLinks && span.IsSampled() {
			turn.AddLink(trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{AttrLink.String("ended")}})
		}
	}
	if created > maxTasks {
		turn.SetAttributes(AttrTasksOmitted.Int(created - maxTasks))
	}
}

// task creates the span of a task. If the turn that scheduled the task is traced, it is the parent.
func (t *Tracing) task(ctx context.Context, all *perdure.TurnTasks, x *perdure.TaskInfo) trace.SpanContext {
	about := []attribute.KeyValue{AttrInstance.String(all.InstanceID), AttrExecution.String(all.ExecutionID)}
	attrs := []attribute.KeyValue{
		AttrTask.Int64(x.ID), AttrTaskKind.String(string(x.Kind)), AttrTaskOutcome.String(string(x.Outcome)),
		AttrTaskEndedIn.Int64(all.Sequence),
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
	_, span := t.start(trace.ContextWithRemoteSpanContext(ctx, parent), taskIDs(all.ExecutionID, x.ID), about,
		strings.TrimSpace(taskNames[x.Kind]+" "+x.Name), opts...)
	t.fail(span, x.Failure)
	span.End(trace.WithTimestamp(x.EndedAt))
	return span.SpanContext()
}
