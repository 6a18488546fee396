package dispatch

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// retried puts the next attempt into the queue when the policy has one, and then has nothing to tell: a retry is a message
// with a delay, and costs no turn. Sent first, then the record is deleted (R14).
func (w *Worker) retried(ctx context.Context, t *task, e ending) ending {
	it := &t.item
	if e.outcome == nil || e.outcome.Error == nil || it.Retry == nil {
		return e
	}
	delay, again := perdure.NextRetry(it.Retry, it.ExecutionID, it.ActivityID, it.Attempt, e.outcome.Error)
	at := w.options.Clock().Add(delay).UTC()
	if !again || tooLate(&it.WorkItem, at) {
		return e
	}
	w.manager.flush(ctx, t)
	next := it.WorkItem
	next.Attempt, next.NotBefore = it.Attempt+1, &at
	w.options.Logger.InfoContext(ctx, "activity failed and is tried again", "activity", it.Name, "instance", it.InstanceID,
		"activityId", it.ActivityID, "attempt", it.Attempt, "delay", delay, "error", e.outcome.Error.Message)
	return w.put(ctx, it, next)
}

// put sends what comes next, unless the lock is over: then another has the attempt, and its retries.
func (w *Worker) put(ctx context.Context, it *provider.LockedWorkItem, next provider.WorkItem) ending {
	if !it.Record.Held(w.options.Clock()) {
		return ending{back: true}
	}
	if err := w.provider.PutWorkItems(ctx, next); err != nil {
		w.options.Logger.ErrorContext(ctx, "the next attempt of an activity was not accepted, this one will run again",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return ending{back: true}
	}
	return ending{}
}
