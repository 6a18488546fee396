package turns

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

func isParentsCancel(m *provider.InboxMessage) bool {
	return m.Kind == provider.MessageCancel && m.Parent != nil
}

// notForCode reports whether a message is not for the instance's code: what starts it, a parent's cancel of an instance that is over,
// or is another than the one with this id, and an event or an update of another instance that nobody takes, or that is answered.
func (x *execution) notForCode(m provider.InboxMessage) bool {
	return m.Kind == provider.MessageStart || m.IsRefresh() || isParentsCancel(&m) && (x == nil || x.over() || m.StartID != x.start.StartID) ||
		m.IsSent() && (x == nil || x.over() || x.refused.Has(&m.Message)) || answeredBefore(x, &m) != nil
}

// refuseCancel: the child that a parent cancels is not there. It may never begin any more (R16).
func (o *Orchestrator) refuseCancel(ctx context.Context, m *provider.InboxMessage) error {
	if err := o.provider.RejectCancel(ctx, m); err != nil {
		return err
	}
	o.options.Logger.InfoContext(ctx, "sub-orchestration cancelled before it started",
		"event", logevent.SubOrchestrationNeverStarted, "instance", m.InstanceID, "parent", m.Parent.InstanceID,
		"parentExecution", m.Parent.ExecutionID, "parentEventId", m.Parent.EventID, "reason", m.Reason)
	return nil
}

// answerCancel sends a parent that its child cannot be cancelled.
func (o *Orchestrator) answerCancel(ctx context.Context, x *execution, m *provider.InboxMessage) error {
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Kind = provider.MessageCancelChildOutcome
	answer.Error = &history.Failure{
		Type:    history.TypeNotFound,
		Message: fmt.Sprintf("instance %q belongs to another start", m.InstanceID),
	}
	if m.StartID == x.start.StartID {
		answer.Error = &history.Failure{Type: history.TypeEnded, Message: fmt.Sprintf("instance %q has ended",
			m.InstanceID)}
	}
	if err := o.provider.EnqueueForOrchestrator(ctx, answer); err != nil {
		return err
	}
	o.options.Logger.InfoContext(ctx, "cancellation by the parent rejected",
		"event", logevent.SubOrchestrationCancelRejected, "instance", m.InstanceID, "execution", x.head.ExecutionID,
		"parent", m.Parent.InstanceID, "parentExecution", m.Parent.ExecutionID, "parentEventId", m.Parent.EventID,
		"reason", m.Reason, "error", answer.Error.Message)
	return nil
}

// childrenNamed is how many children a line of the log names. A turn may cancel all that an instance has: the rest are counted.
const childrenNamed = 10

// children are those that a turn has something in common for.
type children struct {
	n     int
	named []string
	why   string // of the first
}

func (c *children) add(e *history.Event, why string) {
	if c.n++; c.n == 1 {
		c.why = why
	}
	if len(c.named) < childrenNamed {
		c.named = append(c.named, fmt.Sprintf("#%d %s", e.SourceEventID, e.InstanceID))
	}
}

func (c *children) names() string { return strings.Join(c.named, ", ") }

// logCancels logs what a turn that is committed has to do with cancels of children: a line for each thing, however many they are.
func logCancels(ctx context.Context, log *slog.Logger, t *provider.Turn) {
	var asked, ended, refused children
	for i := range t.Events {
		switch e := &t.Events[i]; e.Kind {
		case history.SubOrchestrationCancelRequested:
			asked.add(e, e.Reason)
		case history.SubOrchestrationCancelFailed:
			refused.add(e, messageOf(e.Error))
		case history.SubOrchestrationFailed:
			if e.Error != nil && e.Error.Type == history.TypeCancelled {
				ended.add(e, e.Error.Reason)
			}
		default:
		}
	}
	if asked.n > 0 {
		log.InfoContext(ctx, "requesting cancellation of sub-orchestrations",
			"event", logevent.SubOrchestrationCancelRequested, "instance", t.InstanceID,
			"execution", t.Head.ExecutionID, "children", asked.n, "first", asked.names(), "reason", asked.why)
	}
	if ended.n > 0 {
		log.InfoContext(ctx, "cancelled sub-orchestrations ended", "event", logevent.SubOrchestrationCancelled,
			"instance", t.InstanceID, "execution", t.Head.ExecutionID, "children", ended.n, "first", ended.names(),
			"reason", ended.why)
	}
	if refused.n > 0 {
		log.WarnContext(ctx, "cancelling sub-orchestrations failed", "event", logevent.SubOrchestrationCancelFailed,
			"instance", t.InstanceID, "execution", t.Head.ExecutionID, "children", refused.n, "first", refused.names(),
			"error", refused.why)
	}
}

func messageOf(f *history.Failure) string {
	if f == nil {
		return ""
	}
	return f.Message
}
