package activities

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// An activity that returned perdure.ErrPending is completed by the holder of its token (R26). Its worker transfers the
// attempt with its timeouts to the orchestrator, and deletes the work item. It first stores the transfer in the
// activity's record, so that another delivery repeats it instead of running the code.

// pendingPrecision is the precision of the stored times of a pending attempt.
const pendingPrecision = time.Millisecond

// becomesPending reports whether a result makes the attempt pending. An activity that the worker has stopped runs again
// instead, because another worker may have it. An AtMostOnce attempt does not run again and becomes pending.
func (t *task) becomesPending(r result) bool {
	stopped := t.stop.lockLost || !t.item.AtMostOnce && t.stop.isByWorker()
	return r.outcome != nil && r.outcome.Pending != nil && !stopped
}

// finishPending adds the result of an attempt that becomes pending, with its timeouts.
func (w *Worker) finishPending(ctx context.Context, t *task, r result) {
	w.supervisor.heartbeats.flush(ctx, t)
	p, it := r.outcome.Pending, t.item
	p.Since = w.options.Clock().UTC().Truncate(pendingPrecision)
	if it.StartToCloseMs > 0 {
		at := t.startedAt.Add(time.Duration(it.StartToCloseMs) * time.Millisecond).UTC().Truncate(pendingPrecision)
		p.StartToCloseDeadline = &at
	}
	if it.HeartbeatMs > 0 {
		at := t.heartbeatState().Last().UTC().Truncate(pendingPrecision)
		p.LastHeartbeatAt = &at
	}
	if it.WaitForCancellation {
		p.GraceMs = w.options.gracePeriod().Milliseconds()
	}
	t.Log().InfoContext(ctx, "activity pending: waiting for asynchronous completion", "event", logevent.ActivityPending)
	t.finish(r)
}

// pendingBefore returns the result of a task whose attempt another delivery has made pending, or nil.
func (t *task) pendingBefore(ctx context.Context, record *provider.ActivityRecord) *result {
	it := t.item
	if record.Pending == nil || record.PendingAttempt != it.Attempt {
		return nil
	}
	t.Log().InfoContext(ctx, "skipping redelivered activity: the attempt is pending",
		"event", logevent.ActivityPendingRedelivered)
	return &result{outcome: outcome.PendingAs(it, record.Pending)}
}

// storePending stores pending attempts before they are sent. If that fails and the call waits for the end of the
// activity, the task is released. Another delivery must not report an end while the token is valid. Other attempts are
// sent anyway. AtMostOnce attempts are always sent, because the next delivery could only report them as interrupted.
func (r *recorder) storePending(ctx context.Context, finished []finishedTask) []finishedTask {
	if !slices.ContainsFunc(finished, isNewlyPending) {
		return finished
	}
	concurrently(finished, isNewlyPending, func(e *finishedTask) {
		t, o := e.task, e.outcome
		err := r.writeAlways(ctx, t, provider.ActivityRecord{
			ActivityID: o.ActivityID, Pending: o.Pending, PendingAttempt: o.Attempt,
		})
		if err != nil {
			e.release = t.item.WaitForCancellation && !t.item.AtMostOnce
			t.Log().WarnContext(ctx, "pending attempt not stored, a redelivery runs the activity again",
				"event", logevent.ActivityPendingStoreFailed, intake.DimensionQueue, r.options.Queue, "error", err)
		}
	})
	return finished
}

// isNewlyPending reports whether the code ran in this delivery and made the attempt pending.
func isNewlyPending(e finishedTask) bool {
	return !e.release && e.outcome != nil && e.outcome.Pending != nil && e.task.hasStarted()
}
