package activities

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// maxInvocationTimeouts is the number of consecutive deliveries of an attempt that may exceed their invocation without
// a new heartbeat. The attempt then fails: it would start from the beginning forever.
const maxInvocationTimeouts = 3

// isInvocationTimeout reports whether an activity was stopped by the end of its invocation and had at least half of it.
// An activity that started late may end in another invocation.
func (t *task) isInvocationTimeout() bool {
	b := t.batch
	return t.stop.reason != nil && t.stop.reason.Reason == perdure.ReasonInvocationDeadline && !b.stopAt.IsZero() &&
		t.startedAt.Sub(b.startedAt) <= b.stopAt.Sub(t.startedAt)
}

// countTimeout counts the invocation timeouts of a task that is about to be released, and returns its result. The
// attempt fails after maxInvocationTimeouts. returned is false if the code may still run.
func (s *supervisor) countTimeout(ctx context.Context, t *task, returned bool) result {
	n := 0
	if !t.isInvocationTimeout() || !t.mayWrite(s.options.Clock()) {
		return released
	}
	if !s.heartbeats.hasProgressed(t) {
		n = t.earlier.invocationTimeouts + 1
	}
	switch {
	case n >= maxInvocationTimeouts:
		return s.failStalled(ctx, t, n, returned)
	case n == t.earlier.invocationTimeouts:
		return released
	}

	s.recorder.record(ctx, t, "invocation_ended", provider.ActivityRecord{
		InvocationTimeoutAttempt: t.item.Attempt, InvocationTimeouts: n,
	})
	return released
}

func (s *supervisor) failStalled(ctx context.Context, t *task, n int, returned bool) result {
	t.Log().ErrorContext(ctx, "activity makes no progress, failing the attempt", "event", logevent.ActivityStalled,
		"runOuts", n)
	end := history.OutcomeAbandoned
	if returned {
		end = ""
	}
	return *t.ended(outcome.Of(t.item, outcome.Stalled(t.item, n)), end)
}
