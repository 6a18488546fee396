package activities

import (
	"cmp"
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// cancelCheck checks before the code runs whether the activity is cancelled (R12). If the call waits for the end of a
// cancelled activity, the end is always sent (R23). The task acquires the run lease before it reads the cancel record,
// so that no other delivery runs the code after that end.
type cancelCheck struct {
	options    *Options
	provider   provider.Provider
	supervisor *supervisor
}

// read reads the cancel record, and refuses a cancelled activity.
func (c *cancelCheck) read(ctx context.Context, t *task) *result {
	cancel, next, err := t.cancelRead.Of(t.item.ActivityID)
	if err != nil {
		t.Log().ErrorContext(ctx, "cancel record read failed, releasing the work item",
			"event", logevent.ActivityCancelCheckFailed, "error", err)
		return &released
	}
	return c.check(ctx, t, &cancel, next)
}

// acquireRun acquires the run lease and reads the cancel record. It refuses an activity that another delivery runs or
// has ended, and a cancelled one.
func (c *cancelCheck) acquireRun(ctx context.Context, t *task) *result {
	taken, err := c.supervisor.runLeases.acquire(ctx, t)
	switch {
	case err != nil:
		t.Log().ErrorContext(ctx, "claiming the activity failed, releasing the work item",
			"event", logevent.ActivityClaimFailed, "error", err)
		return &released
	case taken.Outcome != nil: // a delivery has stored its outcome, which may not have been sent
		return &result{outcome: taken.Outcome}
	case !taken.Held:
		return c.refuseDuplicate(ctx, t)
	}
	if pending := t.pendingBefore(ctx, &taken.PreviousRecord); pending != nil { // the token holder reports the end
		return pending
	}
	if refused := c.check(ctx, t, &taken.Cancel, taken.CancelsFrom); refused != nil {
		return refused
	}
	return c.refuseSecondStart(ctx, t)
}

// refuseSecondStart fails an AtMostOnce attempt that an earlier delivery may have started (R32).
func (c *cancelCheck) refuseSecondStart(ctx context.Context, t *task) *result {
	previous, _ := t.run.Previous()
	if !t.item.AtMostOnce || previous == nil || previous.Attempt != t.item.Attempt {
		return nil
	}
	t.Log().WarnContext(ctx, "at-most-once activity may have started before, failing the attempt",
		"event", logevent.ActivityInterrupted, "attemptCount", t.item.Record.ReceiveCount)
	return t.ended(outcome.Interrupted(t.item, nil), t.endBeforeStart())
}

// check refuses a cancelled activity. next is the first segment of the cancel record that was not read.
func (c *cancelCheck) check(ctx context.Context, t *task, cancel *provider.CancelInfo, next int64) *result {
	if !cancel.Requested {
		t.cancelsFrom = next
		return nil
	}
	t.Log().InfoContext(ctx, "skipping activity: cancelled before it started", "event", logevent.ActivitySkipped,
		"reason", cancel.Reason, "message", cancel.Message,
		"decidedFor", max(0, c.options.Clock().Sub(cancel.RequestedAt)))
	t.batch.worker.meter.Count(intake.MetricActivitiesCancelled, t.item.Name, 1)
	t.stop.setCancelled(cancel)
	if previous, _ := t.run.Previous(); previous == nil { // otherwise another delivery may have recorded it
		c.supervisor.recorder.cancelEnd(ctx, t, c.options.Clock(), provider.OutcomeNeverStarted)
	}
	return c.cancelledBeforeStart(ctx, t, cancel)
}

// cancelledBeforeStart returns the result of an activity that was cancelled before its code started here. If the call
// waits for the end, the run lease and the attempt show whether code started elsewhere. An outdated attempt has no
// outcome.
func (c *cancelCheck) cancelledBeforeStart(ctx context.Context, t *task, cancel *provider.CancelInfo) *result {
	if !t.isEndAwaited() {
		return &result{}
	}
	if current, refused := c.isCurrent(ctx, t); refused != nil || !current {
		return cmp.Or(refused, &result{})
	}
	seenAt := c.options.Clock()
	if _, record := t.run.Previous(); !record.SeenAt.IsZero() {
		seenAt = record.SeenAt
	}
	reason := &perdure.CancelledError{Reason: perdure.CancelReason(cancel.Reason), Message: cancel.Message}
	r := t.withEnd(result{outcome: outcome.Cancelled(t.item, reason)}, t.endBeforeStart(), seenAt)
	return &r
}

// refuseDuplicate releases a task whose activity another delivery runs or has just ended, unless the attempt is
// outdated.
func (c *cancelCheck) refuseDuplicate(ctx context.Context, t *task) *result {
	if current, refused := c.isCurrent(ctx, t); refused != nil || !current {
		return cmp.Or(refused, &result{})
	}
	t.Log().InfoContext(ctx, "activity runs in another delivery, releasing the work item",
		"event", logevent.ActivityDuplicateReleased, "attemptCount", t.item.Record.ReceiveCount)
	return &released
}

func (c *cancelCheck) isCurrent(ctx context.Context, t *task) (current bool, refused *result) {
	it := t.item
	if it.Retry == nil {
		return true, nil
	}
	retry, err := c.provider.ReadRetry(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		t.Log().ErrorContext(ctx, "attempt record read failed, releasing the work item",
			"event", logevent.ActivityAttemptReadFailed, "error", err)
		return false, &released
	}
	t.earlier.ended(retry.Ended)
	return retry.Attempt == 0 || retry.Attempt == it.Attempt, nil
}
