package activities

import (
	"cmp"
	"time"

	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// result is the result of a work item. The worker sends the outcome, if there is one, and deletes the record, or it
// releases the record to the queue.
type result struct {
	outcome *provider.ActivityOutcome
	release bool
}

// released is the result of a work item that returns to its queue. It is never changed.
var released = result{release: true}

// finishedTask is a task with its result.
type finishedTask struct {
	task *task
	result
}

func byIndex(a, b finishedTask) int { return a.task.index - b.task.index }

// cancelOutcome returns the outcome of a cancelled activity whose code returned.
func (r result) cancelOutcome() provider.CancelOutcome {
	if r.outcome != nil && r.outcome.Error == nil {
		return provider.OutcomeCompleted
	}
	return provider.OutcomeStopped
}

// ended returns the result of a task with an outcome. If the call waits for the end of the activity, end is the kind of
// end.
func (t *task) ended(o *provider.ActivityOutcome, end string) *result {
	if t.item.WaitForCancellation {
		o.Ended = end
	}
	return &result{outcome: o}
}

// resultOf returns the result of a task whose code ended with r or was abandoned. An activity that its worker stopped
// returns to the queue, because another worker can continue it.
func (t *task) resultOf(r result) result {
	switch {
	case t.stop.lockLost:
		return released
	case !t.stop.isByWorker():
		return r
	case !t.item.AtMostOnce || r.outcome == nil:
		return released
	case r.outcome.Error == nil: // the code returned in time
		return r
	default:
		return result{outcome: outcome.Interrupted(t.item, r.outcome.Error)}
	}
}

// abandonedResult returns the result of an activity that did not return within its grace period. If the worker stopped
// the activity, the next delivery determines the outcome.
func (t *task) abandonedResult() result {
	if !t.isEndAwaited() || t.stop.isByWorker() {
		return result{}
	}
	return t.withEnd(result{outcome: outcome.Cancelled(t.item, t.stop.reason)}, history.OutcomeAbandoned, t.stop.at)
}

// withEnd extends the outcome of a cancelled activity, if the call waits for the end. It adds the kind of end and the
// time at which the worker observed the cancellation.
func (t *task) withEnd(r result, end string, seenAt time.Time) result {
	if r.outcome == nil || !t.item.WaitForCancellation {
		return r
	}
	o := *r.outcome
	seenAt = seenAt.UTC()
	o.Ended, o.SeenAt = cmp.Or(o.Ended, end), &seenAt
	return result{outcome: &o}
}

// withEarlierEnd marks the outcome of an attempt if an earlier attempt was abandoned and its code may still run.
func (t *task) withEarlierEnd(r result) result {
	if r.outcome == nil || r.outcome.Ended != "" || t.earlier.end == "" || !t.item.WaitForCancellation {
		return r
	}
	o := *r.outcome
	o.Ended = t.earlier.end
	return result{outcome: &o}
}

// endBeforeStart returns the kind of end of an activity whose code does not start in this delivery.
func (t *task) endBeforeStart() string {
	previous, record := t.run.Previous()
	switch {
	case t.earlier.end != "": // the code of an abandoned attempt or delivery may still run
		return t.earlier.end
	case record.CancelOutcome == provider.OutcomeCompleted || record.CancelOutcome == provider.OutcomeStopped:
		return history.OutcomeReturned // but the outcome was not sent
	case record.CancelOutcome == provider.OutcomeAbandoned:
		return history.OutcomeAbandoned
	case previous != nil && previous.Attempt == t.item.Attempt:
		return history.OutcomeWorkerLost
	case t.item.Attempt > 1:
		return history.OutcomeReturned
	default:
		return history.OutcomeNeverStarted
	}
}
