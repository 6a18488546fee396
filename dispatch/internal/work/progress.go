package work

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// An activity may take longer than an invocation of its function, and go on from its heartbeat in the next. One that leaves no new
// heartbeat each time begins anew each time, and would for ever, unseen.

// runOutsOfAnAttempt is how often in a row an attempt may run into the end of its invocation without a new heartbeat.
const runOutsOfAnAttempt = 3

// hasRunOut reports whether the activity hit the deadline after its fair share of the invocation; a late start does not count, since it
// may well end in another invocation.
func (t *task) hasRunOut() bool {
	return t.stop.why != nil && t.stop.why.Reason == perdure.ReasonInvocationDeadline && !t.batch.stopAt.IsZero() &&
		t.began.Sub(t.batch.since) <= t.batch.stopAt.Sub(t.began)
}

// forgetMarks takes the marks of earlier deliveries away, once, where this one has left new details: whatever they died of, it did not
// keep the activity from getting on, as a killer does. Its own mark stays, so that an activity which kills after a heartbeat goes on alone.
func (w *beatWriter) forgetMarks(ctx context.Context, t *task) {
	if s := &t.suspicion; !s.marked || s.died == 0 || s.forgotten || !w.hasProgressed(t) {
		return
	}
	a := t.attempt()
	a.Progressed = true
	if err := intake.Unmark(ctx, w.base, a); err != nil {
		t.log().WarnContext(ctx, "crash marker deletion failed", "event", logevent.CrashMarkerDeleteFailed,
			"error", err)
		return
	}
	t.suspicion.forget()
}

// countRunOut notes how often in a row an attempt ran into the end of its invocation without progress, and fails it where that is
// enough. It is for a task that goes back to its queue.
func (w *beatWriter) countRunOut(ctx context.Context, t *task, returned bool) result {
	it, n := t.item, 0
	if !t.hasRunOut() || !t.mayWrite(w.manager.options.Clock()) {
		return result{back: true}
	}
	if !w.hasProgressed(t) {
		n = t.past.runOuts + 1
	}
	switch {
	case n >= runOutsOfAnAttempt:
		return t.noProgress(ctx, n, returned)
	case n == t.past.runOuts:
		return result{back: true}
	}

	if err := w.manager.records.put(ctx, t, provider.ActivityRecord{ActivityID: it.ActivityID, InvocationTimeoutAttempt: it.Attempt, InvocationTimeouts: n}); err != nil {
		t.log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "invocation_ended", "error", err)
	}
	return result{back: true}
}

// noProgress is the end of an attempt that has run into the end of its invocation n times in a row.
func (t *task) noProgress(ctx context.Context, n int, returned bool) result {
	it := t.item
	why := fmt.Sprintf("activity %q: it exceeded the time of its invocation %d times in a row without a new "+
		"heartbeat; increase the function timeout, use smaller steps, or continue from heartbeat details", it.Name, n)
	t.log().ErrorContext(ctx, "activity makes no progress, failing the attempt", "event", logevent.ActivityStalled,
		"runOuts", n)
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: intake.TimedOut(why)}
	if it.WaitForCancellation && !returned {
		o.Ended = history.OutcomeAbandoned
	}
	return result{outcome: o}
}
