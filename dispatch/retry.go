package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// retryUnit is what the time of a retry is rounded up to: as exact as it is stored.
const retryUnit = time.Millisecond

// retried says when an activity is tried again that has failed, if its policy has it so. It is the orchestrator that sends the next
// attempt, since it knows whether the activity is still open, and at which attempt (R14). What the next attempt goes on from is
// written first.
func (w *Worker) retried(ctx context.Context, t *task, e ending) ending {
	it := &t.item
	if e.outcome == nil || e.outcome.Error == nil || it.Retry == nil {
		return e
	}
	delay, again := perdure.NextRetry(it.Retry, it.ExecutionID, it.ActivityID, it.Attempt, e.outcome.Error)
	at := w.options.Clock().Add(delay + retryUnit - 1).UTC().Truncate(retryUnit)
	if !again || tooLate(&it.WorkItem, at) {
		return e
	}
	w.manager.flush(ctx, t)
	e.outcome.RetryAt = &at
	text := e.outcome.Error.Message
	if w.options.OmitErrorTexts {
		text = "of type " + e.outcome.Error.Type
	}
	w.options.Logger.InfoContext(ctx, "activity failed and is to be tried again", "activity", it.Name, "instance", it.InstanceID,
		"activityId", it.ActivityID, "attempt", it.Attempt, "delay", delay, "error", text)
	return e
}

// named gives the failure of an activity that has a retry policy its name, by which the orchestrator tells a failure that is told again
// from another run's of the same attempt.
func named(t *task, o *provider.ActivityOutcome) *provider.ActivityOutcome {
	it := &t.item
	if o == nil || o.Error == nil || it.Retry == nil || o.Run != "" { // it was kept: it has its name
		return o
	}
	n := *o
	n.Run, n.Segment = fmt.Sprintf("%s.%d", it.Record.ID, it.Record.ReceiveCount), it.Segment
	return &n
}

// hop sends a work item again that is not due for longer than its queue could delay it: a release before this one has sent it. Once the
// lock is over, another does.
func (w *Worker) hop(ctx context.Context, it *provider.LockedWorkItem) ending {
	if !it.Record.Held(w.options.Clock()) {
		return ending{back: true}
	}
	if err := w.provider.PutWorkItems(ctx, it.WorkItem); err != nil {
		w.options.Logger.ErrorContext(ctx, "an attempt of an activity that is not due yet was not accepted, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return ending{back: true}
	}
	return ending{}
}
