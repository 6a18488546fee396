package timers

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// A queue moves to its dead letters what it has delivered too often, and reports it nowhere. That may be a record that no code has run
// for: a mapping that is throttled raises the count by itself, and an outage of hours does. So the watch picks it up from there (R13).

// pickUp sends what queues have moved to their dead letters once more, and leaves copies there for people. A record is sent first, as
// a new one that the old one cannot swallow, then copied, then deleted: repeating is harmless, since ids settle once.
func (k *Timekeeper) pickUp(ctx context.Context, t *tally) {
	for m, err := range k.provider.DeadLetteredRecords(ctx) {
		if err == nil {
			err = k.pickUpOne(ctx, m)
		}
		t.note(ctx, err)
	}
}

func (k *Timekeeper) pickUpOne(ctx context.Context, m provider.DeadLetteredRecord) error {
	became, of, err := k.resume(ctx, m)
	if errors.Is(err, errUnreadable) {
		k.options.Logger.WarnContext(ctx, "dead letter unreadable, leaving it in the queue",
			"event", logevent.DeadLetterUnreadable, "queue", m.Queue, "record", m.Record.ID, "error", err)
		return nil
	}
	if err == nil {
		k.options.Logger.ErrorContext(ctx, "dead letter recovered: it was delivered too often", append(of,
			"event", logevent.DeadLetterRecovered, "queue", m.Queue, "record", m.Record.ID, "became", became)...)
		err = k.provider.AnnotateDeadLetter(ctx, m, errors.New(provider.ReasonRecovered+" "+became))
	}
	if err != nil {
		return fmt.Errorf("dispatch: recover dead letter %s of queue %s: %w", m.Record.ID, m.Queue, err)
	}
	return nil
}

// errUnreadable: this release cannot read a record.
var errUnreadable = errors.New("record cannot be read")

// resume sends for a moved record what leads on, and returns what that was, and of what.
func (k *Timekeeper) resume(ctx context.Context, m provider.DeadLetteredRecord) (became string, of []any, err error) {
	records := []provider.Record{m.Record}
	switch m.Queue {
	case provider.QueueInbox:
		items, bad := k.provider.DecodeOrchestrationItems(records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		msg := items[0].Messages[0].Message
		msg.Redrive = msg.Redrive.NextMoved(m.Record.ID, m.Record.SentAt)
		return "the message is in the inbox again", whose(msg.InstanceID, "kind", msg.Kind), k.provider.EnqueueForOrchestrator(ctx, msg)
	case provider.QueueTimers:
		timers, bad := k.provider.DecodeTimers(records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		timer := timers[0].Timer
		return "the timer is scheduled again", whose(timer.InstanceID, "timerId",
			timer.TimerID), k.provider.HoldTimers(ctx, timer)
	default:
		items, bad := k.provider.DecodeWorkItems(ctx, records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		it := items[0].WorkItem
		it.PossibleDuplicate, it.Redrive = true, it.Redrive.Next(m.Record.ID)
		return "the work item is in its queue again", whose(it.InstanceID, "activity", it.Name, "activityId", it.ActivityID), k.provider.PutWorkItems(ctx, it)
	}
}

// whose is the beginning of what the log has of a record.
func whose(instanceID string, more ...any) []any {
	return append([]any{"instance", instanceID}, more...)
}
