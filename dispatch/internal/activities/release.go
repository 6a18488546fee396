package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// resend replaces the records of released tasks that were delivered often with new ones. It returns the other tasks.
func (s *settlement) resend(ctx context.Context, tasks []*task) (rest []*task) {
	if len(tasks) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	now := s.options.Clock()
	var replaced []*task
	var old []provider.Record
	var items []provider.WorkItem
	for _, t := range tasks {
		if !s.isResendDue(t, now) {
			rest = append(rest, t)
			continue
		}
		item := delayedCopy(t.item, now)
		item.Redrive = item.Redrive.Next(t.item.Record.ID) // unread crash markers may exist
		replaced = append(replaced, t)
		old = append(old, t.item.Record)
		items = append(items, item)
	}
	if len(old) == 0 {
		return rest
	}

	if err := s.base.Provider.PutWorkItems(ctx, items...); err != nil {
		s.options.Logger.WarnContext(ctx, "resending work items failed, releasing their records",
			"event", logevent.WorkItemResendFailed, "queue", s.options.Queue, "records", len(old), "error", err)
		return append(rest, replaced...)
	}
	if err := s.base.Provider.DeleteRecords(ctx, s.options.Queue, old...); err != nil {
		s.options.Logger.WarnContext(ctx,
			"deleting the old records of resent work items failed, both will be delivered",
			"event", logevent.WorkItemDuplicated, "queue", s.options.Queue, "error", err)
	}
	return rest
}

// isResendDue reports whether a released task gets a new record, whose delivery count is zero. A task needs a new
// record after many deliveries that were not failures of its code, or if its worker stopped the code after progress.
func (s *settlement) isResendDue(t *task, now time.Time) bool {
	after := s.options.resendAfter(t)
	switch {
	case after < 0, t.item.Record.ReceiveCount < after, !t.item.Record.Held(now):
		return false
	case t.crashes.IsPoison(), t.crashes.IsUnexplained():
		return false
	default:
		return t.stop.reason == nil || s.supervisor.heartbeats.hasProgressed(t)
	}
}

// delayedCopy returns a copy of a work item with the delay of its last delivery, or with the longest delay if it was
// resent before. FIFO queues have no delays, so a copy with an exclusive key has none.
func delayedCopy(it *provider.LockedWorkItem, now time.Time) provider.WorkItem {
	delay := intake.RetryDelay(it.Record.ReceiveCount)
	if it.ResendCount > 0 {
		delay = intake.LongestRetryDelay
	}
	next, at := it.WorkItem, now.Add(delay).UTC()
	if next.NotBefore = &at; it.ExclusiveKey != "" {
		next.NotBefore = nil
	}
	next.PossibleDuplicate = true
	next.ResendCount = it.ResendCount + 1
	return next
}

// release makes records visible again after a delay, even if ctx has ended, and returns their IDs. It skips records
// whose lock has ended, because another worker may have them.
func (s *settlement) release(ctx context.Context, tasks []*task) (failed []string) {
	if len(tasks) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	now := s.options.Clock()
	var held, apart, behind []provider.Record
	for _, t := range tasks {
		switch r := t.item.Record; {
		case !r.Held(now):
			failed = append(failed, r.ID)
		case t.key.WasReleased():
			behind = append(behind, r)
		case t.crashes.NeedsLongerDelay():
			apart = append(apart, r)
		default:
			held = append(held, r)
		}
	}
	queue := s.options.Queue
	failed = append(failed, intake.Abandon(ctx, s.base, queue, held)...)
	failed = append(failed, intake.AbandonAfter(ctx, s.base, queue, behind, noDelay)...)
	return append(failed, intake.AbandonAfter(ctx, s.base, queue, apart, intake.SpreadDelay)...)
}

// noDelay is the delay of a record that is released because an earlier record of its key was released. The queue
// delivers no record of the key until the earlier one is visible.
func noDelay(*provider.Record) time.Duration { return 0 }
