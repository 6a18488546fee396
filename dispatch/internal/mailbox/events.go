package mailbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// readRejected reads, once for an execution, the events of other instances that must not reach it. Their senders have
// received the response that there is no receiver, but a copy of the message arrived later. The read is not needed if
// the execution had its first turn long before the event was sent.
func (b *Mailbox) readRejected(
	ctx context.Context, instanceID string, x *execution.Execution, waiting []provider.InboxMessage,
) error {
	if x.Recipient.HasRejectedEvents() || x.Ended() {
		return nil
	}
	for i := range waiting {
		m := &waiting[i]
		if !m.IsSent() || m.SentAt != nil && x.Index.HadTurnBefore(m.SentAt.Add(-clockSkew)) {
			continue
		}
		rejected, err := b.Provider.ReadRejectedEvents(ctx, instanceID)
		if err != nil {
			return err
		}
		x.Recipient.SetRejectedEvents(rejected)
		return nil
	}
	return nil
}

// hasNoReceiver reports whether a message of another instance has no receiver, has no response yet, and starts no
// instance.
func (r *Receiver) hasNoReceiver(m *provider.InboxMessage) bool {
	return m.IsSent() && r.Execution.Response(m) == nil && !r.starts(m) && r.Execution.BypassesCode(*m)
}

// Reject responds to the waiting messages of other instances at the front that have no receiver, and returns their
// number. A message has no receiver if the instance does not exist, its current execution has ended, or the event was
// rejected before. ended is the ended execution, or empty.
func (b *Mailbox) Reject(
	ctx context.Context, r *Receiver, ended string, waiting []provider.InboxMessage,
) (n int, err error) {
	var rejected []*provider.InboxMessage
	for i := range waiting {
		startsNext := i > 0 && waiting[i].Orchestration != "" // it is processed after the messages before it
		if startsNext || !r.hasNoReceiver(&waiting[i]) {
			break
		}
		rejected = append(rejected, &waiting[i])
	}

	if err := b.Provider.RejectEvents(ctx, ended, rejected...); err != nil {
		return 0, err
	}
	from := rejected[0].Parent
	b.Logger.InfoContext(ctx, "messages of another instance rejected: the receiver is not running",
		"event", logevent.MessageRejected, "instance", r.InstanceID, "events", len(rejected),
		"from", from.InstanceID, "fromExecution", from.ExecutionID, "fromEventId", from.EventID,
		"name", rejected[0].Name, "over", ended != "")
	return len(rejected), nil
}

// checkIncarnations marks recovered dead letters that were sent to an earlier incarnation of the instance. They became
// dead letters before that incarnation was purged. It reads the instance if such a message is older than the execution.
func (b *Mailbox) checkIncarnations(
	ctx context.Context, instanceID string, x *execution.Execution, q *messages.Queue,
) error {
	waiting := q.Waiting()
	for i := range waiting {
		m := &waiting[i]
		if !isForAnyIncarnation(m) || x.Start().Time.Before(*m.Redrive.MovedAt) {
			continue
		}
		switch in, err := b.Provider.ReadInstance(ctx, instanceID); {
		case errors.Is(err, provider.ErrNotFound): // the commit detects it
			return nil
		case err != nil:
			return fmt.Errorf("dispatch: instance %q: check the incarnation of a recovered message: %w",
				instanceID, err)
		case m.Redrive.MovedAt.Before(in.PurgedAt):
			q.MarkPurged(i)
			b.Logger.WarnContext(ctx, "recovered dead letter dropped: its instance was purged",
				"event", logevent.DeadLetterDropped, "instance", instanceID, "kind", m.Kind,
				"movedAt", *m.Redrive.MovedAt)
		}
	}
	return nil
}

// isForAnyIncarnation reports whether a recovered message does not name its incarnation.
func isForAnyIncarnation(m *provider.InboxMessage) bool {
	if m.Redrive == nil || m.Redrive.MovedAt == nil || m.ExecutionID != "" || m.StartID != "" {
		return false
	}
	switch m.Kind {
	case provider.MessageEventRaised, provider.MessageTerminate, provider.MessageCancel, provider.MessageCancelActivity,
		provider.MessageExecutionSuspended, provider.MessageExecutionResumed:
		return true
	default: // a wake is for any incarnation, and messages of other instances get a response (R24, R31)
		return false
	}
}
