package work

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// retried sets when an activity is tried again that has failed, if its policy has it so. It is the orchestrator that sends the next
// attempt, since it knows whether the activity is still open, and at which attempt (R14). What the next attempt goes on from is
// written first.
func (w *Worker) retried(ctx context.Context, t *task, r result) result {
	it := t.item
	if r.outcome == nil || r.outcome.Error == nil || it.Retry == nil {
		return r
	}
	delay, again := replay.NextRetry(it.Retry, it.ExecutionID, it.ActivityID, it.Attempt, r.outcome.Error)
	at := intake.RetryAt(w.options.Clock(), delay)
	if !again || tooLate(&it.WorkItem, at) {
		return r
	}

	w.manager.writer.flush(ctx, t)
	r.outcome.RetryAt = &at
	t.log().InfoContext(ctx, "activity failed, retrying", "event", logevent.ActivityRetryScheduled, "delay", delay,
		"error", w.textOf(r.outcome.Error))
	return r
}

// named gives the failure of an activity that has a retry policy its name. By that the orchestrator knows a failure that it was sent
// before from one of another run of the same attempt.
func named(t *task, o *provider.ActivityOutcome) *provider.ActivityOutcome {
	it := t.item
	if o == nil || o.Error == nil || it.Retry == nil || o.Run != "" { // it was kept with its name
		return o
	}
	n := *o
	n.Run = fmt.Sprintf("%s.%d", it.Record.ID, it.Record.ReceiveCount)
	n.Segment = it.Segment
	return &n
}
