package sweeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// recoverDeadLetters resends the records that queues moved to their dead-letter queues after too many deliveries (R13).
// Their code may never have run, for example because the event source mapping was throttled. A record is resent before
// it is annotated, which deletes the original. A repetition is harmless, because each ID settles once.
func (s *Sweeper) recoverDeadLetters(ctx context.Context, r *result) {
	for m, err := range s.Provider.DeadLetteredRecords(ctx) {
		if err == nil {
			err = s.recoverDeadLetter(ctx, m)
		}
		r.add(ctx, err)
	}
}

func (s *Sweeper) recoverDeadLetter(ctx context.Context, m provider.DeadLetteredRecord) error {
	became, attrs, err := s.resend(ctx, m)
	if errors.Is(err, errUnreadable) {
		s.Logger.WarnContext(ctx, "dead letter unreadable, leaving it in the queue",
			"event", logevent.DeadLetterUnreadable, "queue", m.Queue, "record", m.Record.ID, "error", err)
		return nil
	}
	if err == nil {
		s.Logger.ErrorContext(ctx, "dead letter recovered: it was delivered too often", append(attrs,
			"event", logevent.DeadLetterRecovered, "queue", m.Queue, "record", m.Record.ID, "became", became)...)
		err = s.Provider.AnnotateDeadLetter(ctx, m, errors.New(provider.ReasonRecovered+" "+became))
	}
	if err != nil {
		return fmt.Errorf("dispatch: recover dead letter %s of queue %s: %w", m.Record.ID, m.Queue, err)
	}
	return nil
}

// errUnreadable is the error of a record that this release cannot read.
var errUnreadable = errors.New("record cannot be read")

const attrInstance = "instance"

// resend sends the content of a dead letter as a new message, which SQS does not deduplicate with the original. It
// returns a description of the new message and log attributes of its content.
func (s *Sweeper) resend(ctx context.Context, m provider.DeadLetteredRecord) (became string, attrs []any, err error) {
	records := []provider.Record{m.Record}
	switch m.Queue {
	case provider.QueueInbox:
		items, bad := s.Provider.DecodeOrchestrationItems(records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		msg := items[0].Messages[0].Message
		msg.Redrive = msg.Redrive.NextMoved(m.Record.ID, m.Record.SentAt)
		attrs = []any{attrInstance, msg.InstanceID, "kind", msg.Kind}
		return "the message is in the inbox again", attrs, s.Provider.EnqueueForOrchestrator(ctx, msg)
	case provider.QueueTimers:
		timers, bad := s.Provider.DecodeTimers(records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		timer := timers[0].Timer
		attrs = []any{attrInstance, timer.InstanceID, "timerId", timer.TimerID}
		return "the timer is scheduled again", attrs, s.Provider.HoldTimers(ctx, timer)
	default:
		items, bad := s.Provider.DecodeWorkItems(ctx, records)
		if len(bad) > 0 {
			return "", nil, fmt.Errorf("%w: %w", errUnreadable, bad[0].Err)
		}
		it := items[0].WorkItem
		it.PossibleDuplicate, it.Redrive = true, it.Redrive.Next(m.Record.ID)
		attrs = []any{attrInstance, it.InstanceID, "activity", it.Name, "activityId", it.ActivityID}
		return "the work item is in its queue again", attrs, s.Provider.PutWorkItems(ctx, it)
	}
}
