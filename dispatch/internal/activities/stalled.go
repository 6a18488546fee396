package activities

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// maxInvocationTimeouts is the number of consecutive deliveries of an attempt that may exceed their invocation without
// a new heartbeat. The attempt then fails.
const maxInvocationTimeouts = 3

// stallDetector fails attempts that make no progress. An activity may take longer than an invocation, and continue from
// its heartbeat in the next one. Without new heartbeats, it would start from the beginning forever.
type stallDetector struct {
	options    *Options
	recorder   *recorder
	heartbeats *heartbeatWriter
}

// isInvocationTimeout reports whether an activity was stopped by the end of its invocation and had at least half of it.
// An activity that started late may end in another invocation.
func (t *task) isInvocationTimeout() bool {
	b := t.batch
	return t.stop.reason != nil && t.stop.reason.Reason == perdure.ReasonInvocationDeadline && !b.stopAt.IsZero() &&
		t.startedAt.Sub(b.startedAt) <= b.stopAt.Sub(t.startedAt)
}

// count counts the invocation timeouts of a task that is about to be released, and returns its result: the attempt
// fails after maxInvocationTimeouts. returned is false if the code may still run.
func (d *stallDetector) count(ctx context.Context, t *task, returned bool) result {
	it, n := t.item, 0
	if !t.isInvocationTimeout() || !t.mayWrite(d.options.Clock()) {
		return released
	}
	if !d.heartbeats.hasProgressed(t) {
		n = t.earlier.invocationTimeouts + 1
	}
	switch {
	case n >= maxInvocationTimeouts:
		return d.fail(ctx, t, n, returned)
	case n == t.earlier.invocationTimeouts:
		return released
	}

	err := d.recorder.writeAlways(ctx, t, provider.ActivityRecord{
		ActivityID: it.ActivityID, InvocationTimeoutAttempt: it.Attempt, InvocationTimeouts: n,
	})
	if err != nil {
		t.Log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "invocation_ended", "error", err)
	}
	return released
}

// fail returns the failure of an attempt after n invocation timeouts.
func (d *stallDetector) fail(ctx context.Context, t *task, n int, returned bool) result {
	it := t.item
	message := fmt.Sprintf("activity %q: it exceeded the time of its invocation %d times in a row without a new "+
		"heartbeat; increase the function timeout, use smaller steps, or continue from heartbeat details", it.Name, n)
	t.Log().ErrorContext(ctx, "activity makes no progress, failing the attempt", "event", logevent.ActivityStalled,
		"runOuts", n)
	o := failedOutcome(it, intake.TimedOut(message))
	if it.WaitForCancellation && !returned {
		o.Ended = history.OutcomeAbandoned
	}
	return result{outcome: o}
}
