package activities

import (
	"context"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay/retry"
)

// addRetryTime adds the time of the next attempt to the outcome of a failed one that is retried. retry.Next decides by
// the retry policy. The orchestrator sends the next attempt, because history shows whether the activity is open and
// which attempt is current (R14). Heartbeat details for the next attempt are written first.
func (w *Worker) addRetryTime(ctx context.Context, t *task, r result) result {
	it := t.item
	if r.outcome == nil || r.outcome.Error == nil || it.Retry == nil {
		return r
	}
	delay, again := retry.Next(it.Retry, it.ExecutionID, it.ActivityID, it.Attempt, r.outcome.Error)
	at := intake.RetryAt(w.options.Clock(), delay)
	if !again || isTooLate(&it.WorkItem, at) {
		return r
	}

	w.supervisor.heartbeats.flush(ctx, t)
	r.outcome.RetryAt = &at
	t.Log().InfoContext(ctx, "activity failed, retrying", "event", logevent.ActivityRetryScheduled, "delay", delay,
		"error", w.options.textOf(r.outcome.Error))
	return r
}
