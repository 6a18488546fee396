package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// closeMessage is what an activity fails with whose schedule-to-close time is over, whoever says so.
const closeMessage = "its schedule-to-close time is over"

// tooLate reports whether an attempt that begins at a time begins after its activity has failed.
func tooLate(it *provider.WorkItem, at time.Time) bool {
	return it.CloseBy != nil && !at.Before(*it.CloseBy)
}

// closed is the outcome of an activity that may not begin any more.
func (w *Worker) closed(ctx context.Context, t *task) *provider.ActivityOutcome {
	it := &t.item
	w.options.Logger.WarnContext(ctx, "activity is not run: its schedule-to-close time was over before it began", "activity", it.Name,
		"instance", it.InstanceID, "activityId", it.ActivityID, "attempt", it.Attempt, "closeBy", *it.CloseBy)
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: timedOut(fmt.Sprintf("activity %q: %s", it.Name, closeMessage))}
	if it.WaitCancel {
		o.Ended = t.endBefore()
	}
	return o
}

func timedOut(message string) *history.Failure {
	return &history.Failure{Type: history.TypeTimeout, Message: message}
}

// within is the context of an attempt of an activity that has limits. Whichever ends it first is a *perdure.TimeoutError as its
// cause.
func (w *Worker) within(ctx context.Context, t *task) (limited context.Context, stop context.CancelFunc) {
	it := &t.item
	ctx, expire := context.WithCancelCause(ctx)
	if it.HeartbeatMs > 0 {
		w.manager.expectHeartbeats(t, expire)
	}
	limit, what := time.Duration(it.StartToCloseMs)*time.Millisecond, ""
	if limit > 0 {
		what = fmt.Sprintf("its start-to-close time of %v is over", limit)
	}
	if it.CloseBy != nil {
		if left := it.CloseBy.Sub(w.options.Clock()); what == "" || left < limit {
			limit, what = left, closeMessage
		}
	}
	if what == "" {
		return ctx, func() { expire(nil) }
	}
	timed, release := context.WithTimeoutCause(ctx, limit, &perdure.TimeoutError{Message: fmt.Sprintf("activity %q: %s", it.Name, what)})
	return timed, func() { release(); expire(nil) }
}

// attempt runs an activity within its limits. One that does not come back by then has failed, whatever it does afterwards:
// nobody waits for it.
func (w *Worker) attempt(ctx context.Context, t *task, a perdure.Activity, input json.RawMessage) (json.RawMessage, *history.Failure) {
	it := &t.item
	if it.StartToCloseMs <= 0 && it.HeartbeatMs <= 0 && it.CloseBy == nil {
		return a.Run(ctx, input)
	}
	ctx, stop := w.within(ctx, t)
	defer stop()
	back := runAside(ctx, it, a, input)
	over := func() *perdure.TimeoutError {
		timeout, _ := context.Cause(ctx).(*perdure.TimeoutError) //nolint:errorlint // the very cause: nothing else ends with one
		return timeout
	}
	select {
	case r := <-back:
		if r.failure == nil || over() == nil {
			return r.result, r.failure
		} // else it says in its own words that its time was over
		return nil, timedOut(over().Message)
	case <-ctx.Done():
		if over() == nil {
			r := <-back
			return r.result, r.failure
		}
	}
	timeout := over()
	t.abandoned = true
	w.options.Logger.WarnContext(ctx, "activity is out of time, and is not waited for any longer", "activity", it.Name,
		"instance", it.InstanceID, "activityId", it.ActivityID, "attempt", it.Attempt, "timeout", timeout.Message)
	return nil, timedOut(timeout.Message)
}

// returned is what an activity came back with.
type returned struct {
	result  json.RawMessage
	failure *history.Failure
}

// runAside runs an activity on a goroutine of its own, which may be left to itself.
func runAside(ctx context.Context, it *provider.LockedWorkItem, a perdure.Activity, input json.RawMessage) <-chan returned {
	back := make(chan returned, 1)
	go func() {
		r := returned{failure: vanished(it).Error}
		defer func() { back <- r }()
		result, failure := a.Run(ctx, input)
		r = returned{result, failure}
	}()
	return back
}
