package work

import (
	"cmp"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// How an activity ended that was cancelled, where its end is waited for.

// endedAs adds to the outcome of an activity that was cancelled how it ended, and when its worker saw the cancel, where that is waited
// for.
func (t *task) endedAs(r result, how string, seenAt time.Time) result {
	if r.outcome == nil || !t.item.WaitForCancellation {
		return r
	}
	o := *r.outcome
	seenAt = seenAt.UTC()
	o.Ended, o.SeenAt = cmp.Or(o.Ended, how), &seenAt
	return result{outcome: &o}
}

// endedBefore adds to the outcome of an attempt that one before it was given up, where that is so: its code may still run, whatever came
// of this attempt.
func (t *task) endedBefore(r result) result {
	if r.outcome == nil || r.outcome.Ended != "" || t.past.end == "" || !t.item.WaitForCancellation {
		return r
	}
	o := *r.outcome
	o.Ended = t.past.end
	return result{outcome: &o}
}

// givenUp is the result of an activity that did not heed its cancel within the grace. Where it was its worker that had to stop, the next delivery says what
// becomes of it.
func (t *task) givenUp() result {
	if !t.isWaitedFor() || t.stop.isOfWorker() {
		return result{}
	}
	return t.endedAs(result{outcome: t.cancelled(t.stop.why)}, history.OutcomeAbandoned, t.stop.at)
}

// interrupted is the result of an attempt that may have begun, and is not begun again; its code may have returned an error when it was stopped (R32).
func (t *task) interrupted(returned *history.Failure) *result {
	it := t.item
	return &result{outcome: &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: &history.Failure{
		Type: history.TypeInterrupted, Cause: returned, Message: fmt.Sprintf("attempt %d of activity %q may have "+
			"started, and its worker died or stopped before the outcome was stored. AtMostOnce does not run it again; "+
			"check its side effects", it.Attempt, it.Name),
	}}}
}

// cancelled is the outcome of an activity that did not come to one of its own.
func (t *task) cancelled(why *perdure.CancelledError) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{
		ActivityID: t.item.ActivityID, Attempt: t.item.Attempt,
		Error: &history.Failure{Type: history.TypeCancelled, Reason: string(why.Reason), Message: why.Message},
	}
}

// endBefore is how an activity ended whose code does not begin here.
func (t *task) endBefore() string {
	var left provider.ActivityRecord
	var before *provider.Run
	if t.run != nil {
		left, before = t.run.left, t.run.before
	}
	switch {
	case t.past.end != "": // an earlier attempt or delivery was given up, and its code may still run
		return t.past.end
	case left.CancelOutcome == provider.OutcomeCompleted || left.CancelOutcome == provider.OutcomeStopped: // and could not be sent
		return history.OutcomeReturned
	case left.CancelOutcome == provider.OutcomeAbandoned:
		return history.OutcomeAbandoned
	case before != nil && before.Attempt == t.item.Attempt:
		return history.OutcomeWorkerLost
	case t.item.Attempt > 1:
		return history.OutcomeReturned
	default:
		return history.OutcomeNeverStarted
	}
}
