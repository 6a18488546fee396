package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// An activity that has returned perdure.ErrPending is completed from outside, by whoever has its token. Its worker hands it over to the
// orchestrator, with its limits, and is done with its work item. What it hands over it first writes beside the activity, so that another
// delivery hands over the same instead of running the code beside its own request.

// pendingUnit is how exact the times of what is handed over are stored.
const pendingUnit = time.Millisecond

// readySigner has the token of a task made whenever its code asks for it.
func (a *admission) readySigner(ctx context.Context, t *task) (hindered *result) {
	tokens, err := a.provider.CompletionTokens(ctx)
	if err != nil {
		t.log().ErrorContext(ctx, "completion token failed, releasing the work item",
			"event", logevent.CompletionTokenFailed, "error", err)
		return &result{back: true}
	}
	t.tokens = tokens
	return nil
}

// pending is what becomes of a task whose code has returned perdure.ErrPending, still without its limits.
func (t *task) pending() *provider.ActivityOutcome {
	it := t.item
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Pending: &provider.PendingAttempt{
		Name: it.Name, Segment: it.Segment, HeartbeatMs: it.HeartbeatMs, Retry: it.Retry, ScheduleToCloseDeadline: it.ScheduleToCloseDeadline, WaitForCancellation: it.WaitForCancellation,
	}}
}

// handsOver reports whether a task has ended with a result that hands it over. One that its worker has stopped is begun again instead: it
// may be another's by now. One that runs at most once is begun no more, and is handed over in its worker's last moments.
func (t *task) handsOver(r result) bool {
	stopped := t.stop.lost || !t.item.AtMostOnce && t.stop.isOfWorker()
	return r.outcome != nil && r.outcome.Pending != nil && !stopped
}

// handOver hands a task over.
func (w *Worker) handOver(ctx context.Context, t *task, r result) {
	w.manager.writer.flush(ctx, t)
	p, it := r.outcome.Pending, t.item
	p.Since = w.options.Clock().UTC().Truncate(pendingUnit)
	if it.StartToCloseMs > 0 {
		at := t.began.Add(time.Duration(it.StartToCloseMs) * time.Millisecond).UTC().Truncate(pendingUnit)
		p.StartToCloseDeadline = &at
	}
	if it.HeartbeatMs > 0 {
		at := beatsOf(t).last.UTC().Truncate(pendingUnit)
		p.LastHeartbeatAt = &at
	}
	if it.WaitForCancellation {
		p.GraceMs = w.options.grace().Milliseconds()
	}
	t.log().InfoContext(ctx, "activity pending: waiting for asynchronous completion", "event", logevent.ActivityPending)
	t.batch.ended.add(finished{t, r})
}

// handedOver is the result of a task whose attempt another delivery has handed over: it does the same.
func (t *task) handedOver(ctx context.Context, left *provider.ActivityRecord) *result {
	it := t.item
	if left.Pending == nil || left.PendingAttempt != it.Attempt {
		return nil
	}
	t.log().InfoContext(ctx, "skipping redelivered activity: the attempt is pending",
		"event", logevent.ActivityPendingRedelivered)
	return &result{outcome: &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Pending: left.Pending}}
}

// keepPending writes down which tasks are handed over, before that is sent. Where the end of one is waited for, and it could not be
// written, it goes back: a copy must not send an end while somebody has the token. Any other is handed over all the same, and so is one that runs at most
// once, of which the next delivery could only say that it was interrupted.
func (r *recorder) keepPending(ctx context.Context, ends []finished) []finished {
	if !slices.ContainsFunc(ends, handsOver) {
		return ends
	}
	var keeping sync.WaitGroup
	for i := range ends {
		t, o := ends[i].task, ends[i].outcome
		if !handsOver(ends[i]) {
			continue
		}
		keeping.Go(func() {
			err := r.put(ctx, t, provider.ActivityRecord{ActivityID: o.ActivityID, Pending: o.Pending, PendingAttempt: o.Attempt})
			if err == nil {
				return
			}
			ends[i].back = t.item.WaitForCancellation && !t.item.AtMostOnce
			t.log().WarnContext(ctx, "pending attempt not stored, a redelivery runs the activity again",
				"event", logevent.ActivityPendingStoreFailed, intake.DimensionQueue, r.options.Queue, "error", err)
		})
	}
	keeping.Wait()
	return ends
}

// handsOver reports whether a task was handed over by its code, which has run here.
func handsOver(e finished) bool {
	return !e.back && e.outcome != nil && e.outcome.Pending != nil && !e.task.began.IsZero()
}
