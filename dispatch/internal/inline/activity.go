package inline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay/retry"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// origin is the execution that schedules activities.
type origin struct {
	*Host

	instanceID, executionID string
}

// activity is an inline activity. Its fields belong to the session, except for the fields that its goroutine uses. The
// latter do not change after the start.
type activity struct {
	*origin

	event      history.Event // the schedule of the activity
	registered registry.Activity
	phase      phase
	// input is the input as stored in history, once the schedule is committed.
	input history.Payload
	// segment is the segment of the schedule. It is 0 before the commit.
	segment int64
	// until is the time at which the activity is stopped. awaitUntil is the time until which the session waits for
	// stopped code.
	until, awaitUntil time.Time
	cancel            context.CancelCauseFunc
	// end is the result, in phase done or released.
	end end
	// attempt is the number of the current or next attempt. dueAt is the due time of the next attempt in Unix
	// milliseconds. It is 0 while an attempt runs.
	attempt atomic.Int32
	dueAt   atomic.Int64
	// calls is the number of calls of the code that have not returned. If attempts time out, there may be several.
	calls atomic.Int32
	// abandoned is set if the code was abandoned and has not returned.
	abandoned atomic.Bool
	// notify wakes the session.
	notify func()
}

// phase is the phase of an activity.
type phase int

const (
	// waiting for capacity: the code has not started.
	waiting phase = iota
	running
	// done: the outcome is not committed.
	done
	// released: the activity continues in its queue.
	released
	// over: the execution does not need the activity. Its code may still run.
	over
)

// end is the result of running an activity: an outcome, or the next attempt, which another process runs.
type end struct {
	outcome *outcome
	// attempt is the last attempt or, without an outcome, the next one. The next attempt is due at dueAt, after the
	// given delay.
	attempt int
	dueAt   time.Time
	delay   time.Duration
}

// outcome is the outcome of an attempt: a result or an error.
type outcome struct {
	attempt int
	result  history.Payload
	err     *history.Failure
}

// event returns the event that records an outcome.
func (o *outcome) event(activityID, id int64, now time.Time) history.Event {
	e := history.Event{
		ID: id, Kind: history.ActivityCompleted, Time: now.UTC(), SourceEventID: activityID, Attempt: o.attempt,
		Inline: true, Result: o.result, Error: o.err,
	}
	if o.err != nil {
		e.Kind = history.ActivityFailed
	}
	return e
}

// bytes returns the approximate size of an outcome in a commit.
func (o *outcome) bytes() int {
	bytes := len(o.result)
	for f := o.err; f != nil; f = f.Cause {
		bytes += len(f.Message) + len(f.Details)
	}
	return bytes
}

// maxRetryDelay is the longest delay of a retry policy for which the next attempt runs in the same invocation.
const maxRetryDelay = time.Second

// run runs the attempts of an activity in the activity's goroutine, and reports the end.
func (a *activity) run(ctx context.Context, report func(*activity, end)) {
	goroutine.ReserveStack()
	e := end{attempt: a.firstAttempt()}
	var began time.Time
	returned := false
	defer func() {
		if !returned { // the code has ended the goroutine
			e = a.after(a.outcome(e.attempt, nil, body.Exited(a.event.Name)))
			a.measure(ctx, began, e)
		}
		report(a, e)
	}()
	var recorded heartbeats
	for !returned {
		if ctx.Err() != nil { // it was stopped before it started
			returned = true
			return
		}
		a.setRunning(e)
		began = a.Meter.Now()
		o := a.runAttempt(ctx, e.attempt, &recorded)
		if o == nil { // it runs again in its queue
			returned = true
			return
		}
		e = a.after(o)
		a.measure(ctx, began, e)
		a.setDue(e)
		if e.outcome != nil || e.delay > maxRetryDelay || !e.dueAt.Before(a.until) {
			returned = true
			return
		}
		returned = sleep.For(ctx, e.dueAt.Sub(a.Clock())) != nil // it is stopped between two attempts
		recorded.next()
	}
}

// after returns the end that follows from an outcome: another attempt, or the outcome.
func (a *activity) after(o *outcome) end {
	if at, delay, retries := a.retryAt(o); retries {
		return end{attempt: o.attempt + 1, dueAt: at, delay: delay}
	}
	return end{attempt: o.attempt, outcome: o}
}

// setRunning records that an attempt runs.
func (a *activity) setRunning(next end) {
	a.attempt.Store(int32(next.attempt))
	a.dueAt.Store(0)
}

// setDue records the next attempt, if any. If the activity is stopped before the attempt starts, a worker of its queue
// runs the attempt when it is due.
func (a *activity) setDue(next end) {
	a.dueAt.Store(next.dueAt.UnixMilli()) // far below 0 if there is none
	a.attempt.Store(int32(next.attempt))
}

// nextAttempt returns the attempt with which a stopped activity continues in its queue.
func (a *activity) nextAttempt() end {
	e := end{attempt: int(a.attempt.Load())}
	if at := a.dueAt.Load(); at > 0 {
		e.dueAt = time.UnixMilli(at).UTC()
	}
	return e
}

func (a *activity) firstAttempt() int { return max(a.event.Attempt, 1) }

func (a *activity) log() *slog.Logger {
	return a.Logger.With("activity", a.event.Name, "instance", a.instanceID, "execution", a.executionID,
		"activityId", a.event.ID, "attempt", int(a.attempt.Load()))
}

// runAttempt runs an attempt and returns its outcome, or nil if the result could not be encoded.
func (a *activity) runAttempt(ctx context.Context, number int, recorded *heartbeats) *outcome {
	e := &a.event
	input, ok := e.Input.Document()
	if !ok {
		return a.outcome(number, nil, &history.Failure{Type: history.TypeError, Message: "input is not in the event"})
	}
	ctx = activityctx.WithInfo(ctx, &activityctx.Info{
		InstanceID: a.instanceID, ExecutionID: a.executionID, ActivityID: e.ID, Name: e.Name, Attempt: number,
		DeliveryCount: 1, Queue: e.Queue,
	})
	ctx = activityctx.WithHeartbeats(ctx, recorded)
	if a.Encoding.HasStore() {
		ctx = activityctx.WithLargePayloads(ctx)
	}
	attempt := body.Attempt{
		Name: e.Name, Code: a.counted(body.Intercept(a.Interceptors, a.registered.Run)),
		StartToClose: time.Duration(e.StartToCloseMs) * time.Millisecond, Now: a.Clock,
	}
	if by, limited := e.ScheduleToCloseDeadline(); limited {
		attempt.CloseBy = &by
	}

	value, failure, _ := attempt.Run(ctx, input)
	return a.encoded(ctx, a.outcome(number, value, failure))
}

// encoded returns an outcome with its result as stored in history, or nil if the result cannot be encoded now.
func (a *activity) encoded(ctx context.Context, o *outcome) *outcome {
	about := perdure.PayloadInfo{
		InstanceID: a.instanceID, ExecutionID: a.executionID, Kind: perdure.PayloadActivityResult, Name: a.event.Name,
	}
	result, err := a.Encoding.EncodePayload(ctx, about, o.result)
	if err == nil {
		err = a.Encoding.EncodeFailure(ctx, about, o.err)
	}
	if failure := execution.UnreadablePayload(err); failure != nil {
		failure.NonRetryable = true
		return a.outcome(o.attempt, nil, failure)
	}
	if err != nil {
		a.log().ErrorContext(ctx, "encoding the activity result failed, the activity will run again",
			"event", logevent.ActivityResultEncodeFailed, "inline", true, "error", err)
		return nil
	}
	o.result = result
	return o
}

// counted returns code that counts its running calls.
func (a *activity) counted(code body.Run) body.Run {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
		a.calls.Add(1)
		defer a.returned()
		return code(ctx, input)
	}
}

// returned records that a call of the code has returned, or has ended its goroutine.
func (a *activity) returned() {
	if a.calls.Add(-1) > 0 {
		return
	}
	if a.abandoned.CompareAndSwap(true, false) {
		a.origin.abandoned.Add(-1)
		a.log().Info("abandoned activity returned, ignoring its result", "event", logevent.ActivityAbandonedReturned,
			"inline", true)
	}
	a.notify()
}

// abandon abandons the code of an ended activity. It returns false if the code has returned in the meantime.
func (a *activity) abandon() bool {
	a.origin.abandoned.Add(1)
	a.abandoned.Store(true)
	if a.calls.Load() == 0 && a.abandoned.CompareAndSwap(true, false) {
		a.origin.abandoned.Add(-1)
		return false
	}
	return true
}

func (a *activity) outcome(attempt int, value json.RawMessage, failure *history.Failure) *outcome {
	o := &outcome{attempt: attempt, err: failure}
	switch {
	case failure == nil:
		o.result = history.NewInlinePayload(value)
	case failure.Type == registry.TypePending:
		o.err = &history.Failure{Type: history.TypeError, NonRetryable: true, Message: fmt.Sprintf(
			"activity %q returned perdure.ErrPending, which inline activities do not support; "+
				"call it without perdure.Inline", a.event.Name)}
	}
	return o
}

// retryAt returns the due time and the delay of the attempt after an outcome, if there is one.
func (a *activity) retryAt(o *outcome) (at time.Time, delay time.Duration, retries bool) {
	delay, retries = retry.Next(a.event.Retry, a.executionID, a.event.ID, o.attempt, o.err)
	at = intake.RetryAt(a.Clock(), delay)
	if by, limited := a.event.ScheduleToCloseDeadline(); limited && !at.Before(by) {
		return at, delay, false
	}
	return at, delay, retries
}

// outputs returns the outputs that send an activity to its queue after its schedule was committed.
func (a *activity) outputs() outputs.Set {
	e := a.event
	e.Input = a.input
	a.recordNext(&e)
	scheduled := provider.Segment{Sequence: a.segment, Events: []history.Event{e}}
	out := outputs.Of(outputs.Origin{InstanceID: a.instanceID, ExecutionID: a.executionID}, scheduled, nil)
	for i := range out.WorkItems {
		out.WorkItems[i].PossibleDuplicate = true // the code may have run, or may still run
	}
	return out
}

// recordNext records the attempt with which an activity continues in its queue, in the event that schedules the
// activity.
func (a *activity) recordNext(e *history.Event) {
	e.Attempt, e.FireAt = 0, nil
	if a.end.attempt > 1 {
		e.Attempt = a.end.attempt
	}
	if at := a.end.dueAt; !at.IsZero() {
		e.FireAt = &at
	}
}

// measure counts the end of an attempt, as a worker does. An activity that continues in its queue has not ended.
func (a *activity) measure(ctx context.Context, began time.Time, e end) {
	m, name := a.Meter, a.event.Name
	if m == nil {
		return
	}
	m.Since(intake.MetricActivityExecution, name, began)
	stopped, _ := errors.AsType[*perdure.CancelledError](context.Cause(ctx))
	switch {
	case stopped == errStopped || stopped == errDropped:
	case stopped != nil:
		m.Count(intake.MetricActivitiesCancelled, name, 1)
	case e.outcome == nil:
		m.Count(intake.MetricActivitiesRetried, name, 1)
	case e.outcome.err != nil:
		m.Count(intake.MetricActivitiesFailed, name, 1)
	}
}

// errStopped is the reason for stopping an activity that runs too long, or that started too late to end in time.
var errStopped = &perdure.CancelledError{
	Reason:  perdure.ReasonInvocationDeadline,
	Message: "time limit of inline activities exceeded; the activity continues in its work queue",
}
