// Package body runs one attempt of an activity, with its timeouts and interceptors. Workers use it for activities, and
// orchestrators use it for inline activities.
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

// Run is the type of registry.Activity.Run.
type Run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure)

// Attempt is one attempt of an activity.
type Attempt struct {
	// Name is the name of the activity.
	Name string
	Code Run
	// StartToClose is the timeout of the attempt; 0 means none. CloseBy is the end of the activity's schedule-to-close
	// timeout; nil means none.
	StartToClose time.Duration
	CloseBy      *time.Time
	// Watch, if not nil, receives a function that ends the attempt because of another timeout. The cause must be a
	// *perdure.TimeoutError.
	Watch func(expire context.CancelCauseFunc)
	// Now returns the current time.
	Now func() time.Time
}

// Run runs the attempt within its timeouts. When a timeout expires, the attempt fails, and Run does not wait for the
// code. If the code has not returned by then, abandoned is the timeout.
func (a *Attempt) Run(
	ctx context.Context, input json.RawMessage,
) (value json.RawMessage, failure *history.Failure, abandoned *perdure.TimeoutError) {
	if a.StartToClose <= 0 && a.Watch == nil && a.CloseBy == nil {
		value, failure = a.Code(ctx, input)
		return value, failure, nil
	}

	ctx, stop := a.limited(ctx)
	defer stop()
	returned := a.start(ctx, input)
	select {
	case r := <-returned:
		if r.failure == nil || TimeoutOf(ctx) == nil {
			return r.value, r.failure, nil
		} // otherwise the failure of the code describes its timeout
		return nil, intake.TimedOut(TimeoutOf(ctx).Message), nil
	case <-ctx.Done():
		if TimeoutOf(ctx) == nil {
			r := <-returned
			return r.value, r.failure, nil
		}
	}
	timeout := TimeoutOf(ctx)
	return nil, intake.TimedOut(timeout.Message), timeout
}

// limited returns the context of an attempt with timeouts. If a timeout ends the context, its cause is a
// *perdure.TimeoutError.
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
	cause := &perdure.TimeoutError{Message: fmt.Sprintf("activity %q: %s", a.Name, what)}
	timed, release := context.WithTimeoutCause(ctx, limit, cause)
	return timed, func() { release(); expire(nil) }
}

// TimeoutOf returns the timeout that ended the context of an attempt, or nil if none did.
func TimeoutOf(ctx context.Context) *perdure.TimeoutError {
	timeout, _ := context.Cause(ctx).(*perdure.TimeoutError) //nolint:errorlint // the cause itself, not a wrapped one
	return timeout
}

// ScheduleToCloseExpired returns the failure of an activity whose schedule-to-close timeout expired.
func ScheduleToCloseExpired(name string) *history.Failure {
	return intake.TimedOut(fmt.Sprintf("activity %q: %s", name, intake.CloseMessage))
}

// Exited returns the failure of an activity whose code ended its goroutine.
func Exited(name string) *history.Failure {
	return &history.Failure{
		Type:    history.TypeGoexit,
		Message: fmt.Sprintf("activity %q called runtime.Goexit, directly or with t.FailNow", name),
	}
}

// codeResult is the result of an activity's code.
type codeResult struct {
	value   json.RawMessage
	failure *history.Failure
}

// start runs the code in another goroutine, which may be abandoned.
func (a *Attempt) start(ctx context.Context, input json.RawMessage) <-chan codeResult {
	returned := make(chan codeResult, 1)
	name, code := a.Name, a.Code
	go func() {
		r := codeResult{failure: Exited(name)}
		defer func() { returned <- r }()
		value, failure := code(ctx, input)
		r = codeResult{value, failure}
	}()
	return returned
}
