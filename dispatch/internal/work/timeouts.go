package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// tooLate reports whether an attempt that begins at a time begins after its activity has failed.
func tooLate(it *provider.WorkItem, at time.Time) bool {
	return it.CloseBy != nil && !at.Before(*it.CloseBy)
}

// closedError is the failure of an activity whose schedule-to-close time is over.
func closedError(name string) *history.Failure {
	return intake.TimedOut(fmt.Sprintf("activity %q: %s", name, intake.CloseMessage))
}

// limited is the context of an attempt of an activity that has limits. The one that ends it first is a *perdure.TimeoutError as its
// cause.
func (t *task) limited(ctx context.Context) (limited context.Context, stop context.CancelFunc) {
	it, w := t.item, t.batch.worker
	ctx, expire := context.WithCancelCause(ctx)
	if it.HeartbeatMs > 0 {
		w.manager.writer.expect(t, expire)
	}

	limit, what := time.Duration(it.StartToCloseMs)*time.Millisecond, ""
	if limit > 0 {
		what = fmt.Sprintf("its start-to-close time of %v is over", limit)
	}
	if it.CloseBy != nil {
		if left := it.CloseBy.Sub(w.options.Clock()); what == "" || left < limit {
			limit, what = left, intake.CloseMessage
		}
	}
	if what == "" {
		return ctx, func() { expire(nil) }
	}
	timed, release := context.WithTimeoutCause(ctx, limit, &perdure.TimeoutError{Message: fmt.Sprintf("activity %q: %s", it.Name, what)})
	return timed, func() { release(); expire(nil) }
}

// runWithin runs an activity within its limits. One that does not come back by then has failed, whatever its code does afterwards: it is
// not waited for.
func (t *task) runWithin(ctx context.Context, a registry.Activity, input json.RawMessage) (json.RawMessage, *history.Failure) {
	it := t.item
	if it.StartToCloseMs <= 0 && it.HeartbeatMs <= 0 && it.CloseBy == nil {
		return a.Run(ctx, input)
	}
	ctx, stop := t.limited(ctx)
	defer stop()
	back := runAside(ctx, it, a, input)
	select {
	case r := <-back:
		if r.failure == nil || outOfTime(ctx) == nil {
			return r.value, r.failure
		} // else it says in its own words that its time was over
		return nil, intake.TimedOut(outOfTime(ctx).Message)
	case <-ctx.Done():
		if outOfTime(ctx) == nil {
			r := <-back
			return r.value, r.failure
		}
	}

	timeout := outOfTime(ctx)
	t.abandoned = true
	t.log().WarnContext(ctx, "activity is out of time, and is not waited for any longer", "timeout", timeout.Message)
	return nil, intake.TimedOut(timeout.Message)
}

// outOfTime is the limit that has ended the context of an attempt; nil where none has.
func outOfTime(ctx context.Context) *perdure.TimeoutError {
	timeout, _ := context.Cause(ctx).(*perdure.TimeoutError) //nolint:errorlint // the very cause: nothing else ends with one
	return timeout
}

// returned is what the code of an activity came back with.
type returned struct {
	value   json.RawMessage
	failure *history.Failure
}

// runAside runs an activity on a goroutine of its own, which may be left to itself.
func runAside(ctx context.Context, it *provider.LockedWorkItem, a registry.Activity, input json.RawMessage) <-chan returned {
	back := make(chan returned, 1)
	go func() {
		r := returned{failure: vanished(it).Error}
		defer func() { back <- r }()
		value, failure := a.Run(ctx, input)
		r = returned{value, failure}
	}()
	return back
}
