package inline

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// limits are the time limits of the inline activities of an invocation.
type limits struct {
	// each is the maximum duration of an activity. 0 means that none runs inline.
	each time.Duration
	// end is the time at which all activities must have ended, so that there is time for the commit. Zero means that
	// the invocation has no known end.
	end time.Time
}

const (
	// share limits an activity to a third of the invocation's remaining time, so that there is time for a commit and
	// another activity.
	share = 3
	// commitReserve is the time that is reserved for the last commit of an invocation, or a quarter of its remaining
	// time if that is less. It is also reserved before the end of the lock on the message.
	commitReserve = time.Second
)

// limitsOf returns the limits of the invocation of ctx.
func (h *Host) limitsOf(ctx context.Context) limits {
	l := limits{each: max(h.Timeout, 0)}
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(h.Clock())
		l.each = min(l.each, left/share)
		l.end = end.Add(-min(commitReserve, left/4))
	}
	return l
}

// until returns the time at which an activity that starts now must have ended.
func (r *Runner) until(now time.Time) time.Time {
	until := intake.Earlier(now.Add(r.limits.each), r.limits.end)
	if lock := r.item.LockedUntil(); !lock.IsZero() {
		until = intake.Earlier(until, lock.Add(-commitReserve))
	}
	return until
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
