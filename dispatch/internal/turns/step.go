package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// step is an activity that runs in the invocation that has decided it (R20). Its fields are the session's, but for those that its own goroutine
// needs, which do not change once it has begun.
type step struct {
	event    history.Event // that schedules it
	activity registry.Activity
	phase    stepPhase
	// input is the step's as it lies in history, once its schedule does.
	input history.Payload
	// segment is the one that schedules it, once that is committed; 0 before.
	segment int64
	// until is when it has run for too long, giveUpAt when its code is waited for no longer.
	until, giveUpAt time.Time
	cancel          context.CancelCauseFunc
	// came is what it has come to, once it is over.
	came stepEnd
	// at is the attempt that is made, or that is next; dueAt when that is due, in Unix milliseconds, 0 once it is made.
	at    atomic.Int32
	dueAt atomic.Int64
	// inside is how many of its attempts' code have not come back: of one that was out of time it may be several.
	inside atomic.Int32
	// leaked: its code was given up, and has not come back.
	leaked atomic.Bool
	view   *view
	// poke has the session look.
	poke func()
}

// stepPhase is how far a step has come.
type stepPhase int

const (
	// stepWaits for room: its code has not begun.
	stepWaits stepPhase = iota
	stepRuns
	// stepDone: it has an outcome, which is in no history yet.
	stepDone
	// stepLeaves: it is for its queue, from the attempt on that is next.
	stepLeaves
	// stepOver: it concerns nobody any more. Its code may still run.
	stepOver
)

// stepEnd is what became of a step: an outcome, or the attempt that another process is to make.
type stepEnd struct {
	outcome *stepOutcome
	// attempt is the last that was made or, without an outcome, the next one, which is due at dueAt, a delay behind the one before.
	attempt int
	dueAt   time.Time
	delay   time.Duration
}

// stepOutcome is what the code of a step came to: a result, or an error.
type stepOutcome struct {
	attempt int
	result  history.Payload
	err     *history.Failure
}

// event is the outcome of an activity, as history records it.
func (o *stepOutcome) event(activityID, id int64, now time.Time) history.Event {
	e := history.Event{ID: id, Kind: history.ActivityCompleted, Time: now.UTC(), SourceEventID: activityID, Attempt: o.attempt, Inline: true, Result: o.result, Error: o.err}
	if o.err != nil {
		e.Kind = history.ActivityFailed
	}
	return e
}

// bytes is roughly what an outcome takes of a commit.
func (o *stepOutcome) bytes() int {
	bytes := len(o.result)
	for f := o.err; f != nil; f = f.Cause {
		bytes += len(f.Message) + len(f.Details)
	}
	return bytes
}

// retryHere is the longest wait between two attempts that an invocation makes itself, as the policy has it.
const retryHere = time.Second

// run makes the attempts of a step, on a goroutine of its own, and tells what came of it.
func (st *step) run(ctx context.Context, tell func(*step, stepEnd)) {
	goroutine.ReserveStack()
	end := stepEnd{attempt: st.firstAttempt()}
	var began time.Time
	returned := false
	defer func() {
		if !returned { // its code has ended the goroutine
			end = st.next(st.outcome(end.attempt, nil, body.Vanished(st.event.Name)))
			st.measure(ctx, began, end)
		}
		tell(st, end)
	}()
	var beats stepBeats
	for !returned {
		if ctx.Err() != nil { // it was stopped before it has begun
			returned = true
			return
		}
		st.makes(end)
		began = st.view.o.stepMeter.Now()
		outcome := st.attempt(ctx, end.attempt, &beats)
		if outcome == nil { // it runs again, in its queue
			returned = true
			return
		}
		end = st.next(outcome)
		st.measure(ctx, began, end)
		st.waits(end)
		if end.outcome != nil || end.delay > retryHere || !end.dueAt.Before(st.until) {
			returned = true
			return
		}
		returned = sleep.For(ctx, end.dueAt.Sub(st.view.o.options.Clock())) != nil // it is stopped between two attempts
		beats.next()
	}
}

// next is what follows the outcome of an attempt: another attempt, if there is to be one.
func (st *step) next(outcome *stepOutcome) stepEnd {
	if at, delay, again := st.retryAt(outcome); again {
		return stepEnd{attempt: outcome.attempt + 1, dueAt: at, delay: delay}
	}
	return stepEnd{attempt: outcome.attempt, outcome: outcome}
}

// makes notes that an attempt is made now.
func (st *step) makes(next stepEnd) {
	st.at.Store(int32(next.attempt))
	st.dueAt.Store(0)
}

// waits notes that an attempt is next, where one is: what stops the step before that begins sends this one to its queue, for when it is due.
func (st *step) waits(next stepEnd) {
	st.dueAt.Store(next.dueAt.UnixMilli()) // of no time it is far below 0
	st.at.Store(int32(next.attempt))
}

// goesOn is with which attempt a step goes on in its queue that is stopped now.
func (st *step) goesOn() stepEnd {
	end := stepEnd{attempt: int(st.at.Load())}
	if at := st.dueAt.Load(); at > 0 {
		end.dueAt = time.UnixMilli(at).UTC()
	}
	return end
}

func (st *step) firstAttempt() int { return max(st.event.Attempt, 1) }

// view is what steps need of the session that they run in.
type view struct {
	o                       *Orchestrator
	instanceID, executionID string
}

// log is the logger for what concerns a step.
func (st *step) log() *slog.Logger {
	return st.view.o.options.Logger.With("activity", st.event.Name, "instance", st.view.instanceID, "execution", st.view.executionID,
		"activityId", st.event.ID, "attempt", int(st.at.Load()))
}

// attempt makes one attempt, and returns its outcome; nil where its result could not be sealed.
func (st *step) attempt(ctx context.Context, number int, beats *stepBeats) *stepOutcome {
	e, v := &st.event, st.view
	input, ok := e.Input.Document()
	if !ok {
		return st.outcome(number, nil, &history.Failure{Type: history.TypeError, Message: "input is not in the event"})
	}
	ctx = activityctx.WithInfo(ctx, &activityctx.Info{
		InstanceID: v.instanceID, ExecutionID: v.executionID, ActivityID: e.ID, Name: e.Name, Attempt: number, DeliveryCount: 1, Queue: e.Queue,
	})
	ctx = activityctx.WithHeartbeats(ctx, beats)
	if v.o.encoding.HasStore() {
		ctx = activityctx.WithLargePayloads(ctx)
	}
	a := body.Attempt{Name: e.Name, Code: st.code(body.Within(v.o.around, st.activity.Run)), StartToClose: time.Duration(e.StartToCloseMs) * time.Millisecond, Now: v.o.options.Clock}
	if by, limited := e.ScheduleToCloseDeadline(); limited {
		a.CloseBy = &by
	}

	value, failure, _ := a.Run(ctx, input)
	return st.sealed(ctx, st.outcome(number, value, failure))
}

// sealed is an outcome with its result as it is to lie in history; nil where that cannot be made now.
func (st *step) sealed(ctx context.Context, outcome *stepOutcome) *stepOutcome {
	v := st.view
	about := perdure.PayloadInfo{InstanceID: v.instanceID, ExecutionID: v.executionID, Kind: perdure.PayloadActivityResult, Name: st.event.Name}
	result, err := v.o.encoding.EncodePayload(ctx, about, outcome.result)
	if err == nil {
		err = v.o.encoding.EncodeFailure(ctx, about, outcome.err)
	}
	if failure := unreadable(err); failure != nil {
		failure.NonRetryable = true
		return st.outcome(outcome.attempt, nil, failure)
	}
	if err != nil {
		st.log().ErrorContext(ctx, "encoding the activity result failed, the activity will run again",
			"event", logevent.ActivityResultEncodeFailed, "inline", true, "error", err)
		return nil
	}
	outcome.result = result
	return outcome
}

// code is the step's code, of which it is known whether it has come back.
func (st *step) code(run body.Run) body.Run {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
		st.inside.Add(1)
		defer st.comeBack()
		return run(ctx, input)
	}
}

// comeBack notes that the code of an attempt has come back, or has ended its goroutine.
func (st *step) comeBack() {
	if st.inside.Add(-1) > 0 {
		return
	}
	if st.leaked.CompareAndSwap(true, false) {
		st.view.o.leaks.Add(-1)
		st.log().Info("abandoned activity returned, ignoring its result", "event", logevent.ActivityAbandonedReturned,
			"inline", true)
	}
	st.poke()
}

// leak gives the code of a step up that is over, and reports whether it had not come back.
func (st *step) leak() bool {
	st.view.o.leaks.Add(1)
	st.leaked.Store(true)
	if st.inside.Load() == 0 && st.leaked.CompareAndSwap(true, false) {
		st.view.o.leaks.Add(-1)
		return false
	}
	return true
}

// outcome is the outcome of an attempt.
func (st *step) outcome(attempt int, value json.RawMessage, failure *history.Failure) *stepOutcome {
	o := &stepOutcome{attempt: attempt, err: failure}
	switch {
	case failure == nil:
		o.result = history.NewInlinePayload(value)
	case failure.Type == registry.TypePending:
		o.err = &history.Failure{Type: history.TypeError, NonRetryable: true, Message: fmt.Sprintf(
			"activity %q returned perdure.ErrPending, which inline activities do not support; "+
				"call it without perdure.Inline", st.event.Name)}
	}
	return o
}

// retryAt is when the attempt is due that follows an outcome, after which delay, if one does.
func (st *step) retryAt(outcome *stepOutcome) (at time.Time, delay time.Duration, again bool) {
	v := st.view
	delay, again = replay.NextRetry(st.event.Retry, v.executionID, st.event.ID, outcome.attempt, outcome.err)
	at = intake.RetryAt(v.o.options.Clock(), delay)
	if by, limited := st.event.ScheduleToCloseDeadline(); limited && !at.Before(by) {
		return at, delay, false
	}
	return at, delay, again
}

// outputs are what sends a step, whose schedule is committed, to its queue.
func (st *step) outputs() provider.Outputs {
	e, v := st.event, st.view
	e.Input = st.input
	st.leave(&e)
	out := provider.OutputsOf(provider.Origin{InstanceID: v.instanceID, ExecutionID: v.executionID}, provider.Segment{Sequence: st.segment, Events: []history.Event{e}}, nil)
	for i := range out.WorkItems {
		out.WorkItems[i].PossibleDuplicate = true // its code may still run, or have run
	}
	return out
}

// leave notes in the event that schedules a step with which attempt it goes on in its queue.
func (st *step) leave(e *history.Event) {
	e.Attempt, e.FireAt = 0, nil
	if st.came.attempt > 1 {
		e.Attempt = st.came.attempt
	}
	if at := st.came.dueAt; !at.IsZero() {
		e.FireAt = &at
	}
}

// errStopped is why a step is stopped that has run for too long, or for whose end there is no time.
var errStopped = &perdure.CancelledError{
	Reason:  perdure.ReasonInvocationDeadline,
	Message: "time limit of inline activities exceeded; the activity continues in its work queue",
}
