// Package body runs the code of activities, an attempt at a time: within its limits, and within interceptors. The room of the workers and that of
// the turns use it, which know nothing of each other.
package body

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
)

// Run is the code of an activity, as a registry has it.
type Run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure)

// Attempt is one attempt of an activity.
type Attempt struct {
	// Name is the activity's.
	Name string
	Code Run
	// StartToClose limits the attempt; 0 does not. CloseBy is when the activity fails if it has not ended; nil: there is no limit.
	StartToClose time.Duration
	CloseBy      *time.Time
	// Watch, if there is one, is told how to end the attempt with another limit: a *perdure.TimeoutError.
	Watch func(expire context.CancelCauseFunc)
	// Now is the clock.
	Now func() time.Time
}

// Run runs the attempt within its limits. One that does not come back by then has failed, whatever its code does afterwards: it is not waited
// for, and abandoned says by which limit.
func (a *Attempt) Run(ctx context.Context, input json.RawMessage) (value json.RawMessage, failure *history.Failure, abandoned *perdure.TimeoutError) {
	if a.StartToClose <= 0 && a.Watch == nil && a.CloseBy == nil {
		value, failure = a.Code(ctx, input)
		return value, failure, nil
	}

	ctx, stop := a.limited(ctx)
	defer stop()
	back := runAside(ctx, a, input)
	select {
	case r := <-back:
		if r.failure == nil || OutOfTime(ctx) == nil {
			return r.value, r.failure, nil
		} // else it says in its own words that its time was over
		return nil, intake.TimedOut(OutOfTime(ctx).Message), nil
	case <-ctx.Done():
		if OutOfTime(ctx) == nil {
			r := <-back
			return r.value, r.failure, nil
		}
	}
	timeout := OutOfTime(ctx)
	return nil, intake.TimedOut(timeout.Message), timeout
}

// limited is the context of an attempt that has limits. The one that ends it first is a *perdure.TimeoutError as its cause.
func (a *Attempt) limited(ctx context.Context) (limited context.Context, stop context.CancelFunc) {
	ctx, expire := context.WithCancelCause(ctx)
	if a.Watch != nil {
		a.Watch(expire)
	}

	limit, what := a.StartToClose, ""
	if limit > 0 {
		what = fmt.Sprintf("start-to-close timeout of %v expired", limit)
	}
	if a.CloseBy != nil {
		if left := a.CloseBy.Sub(a.Now()); what == "" || left < limit {
			limit, what = left, intake.CloseMessage
		}
	}
	if what == "" {
		return ctx, func() { expire(nil) }
	}
	timed, release := context.WithTimeoutCause(ctx, limit, &perdure.TimeoutError{Message: fmt.Sprintf("activity %q: %s", a.Name, what)})
	return timed, func() { release(); expire(nil) }
}

// OutOfTime is the limit that has ended the context of an attempt; nil where none has.
func OutOfTime(ctx context.Context) *perdure.TimeoutError {
	timeout, _ := context.Cause(ctx).(*perdure.TimeoutError) //nolint:errorlint // the very cause: nothing else ends with one
	return timeout
}

// Closed is the failure of an activity whose schedule-to-close time is over.
func Closed(name string) *history.Failure {
	return intake.TimedOut(fmt.Sprintf("activity %q: %s", name, intake.CloseMessage))
}

// Vanished is the failure of an activity that ended its goroutine.
func Vanished(name string) *history.Failure {
	return &history.Failure{
		Type:    history.TypeGoexit,
		Message: fmt.Sprintf("activity %q called runtime.Goexit, directly or with t.FailNow", name),
	}
}

// returned is what the code of an activity came back with.
type returned struct {
	value   json.RawMessage
	failure *history.Failure
}

// runAside runs an attempt on a goroutine of its own, which may be left to itself.
func runAside(ctx context.Context, a *Attempt, input json.RawMessage) <-chan returned {
	back := make(chan returned, 1)
	name, code := a.Name, a.Code
	go func() {
		r := returned{failure: Vanished(name)}
		defer func() { back <- r }()
		value, failure := code(ctx, input)
		r = returned{value, failure}
	}()
	return back
}
