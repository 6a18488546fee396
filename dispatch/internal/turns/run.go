package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/observe"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// runCode runs the code and then the inline activities that it has scheduled.
func (s *session) runCode(ctx context.Context) (state, error) {
	t, x := &s.turn, s.x
	x.Code.SetContext(ctx)
	ran, err := t.ranBefore()
	if !ran {
		err = t.run()
	}
	if err != nil {
		return t.block(err)
	}
	if !ran {
		verified, err := s.o.mailbox.RespondToRepeated(ctx, s.item.InstanceID, x, &t.out)
		switch {
		case err != nil || !verified:
			return verifying, err
		case len(t.out.Events) > 0:
		case !x.Verified():
			return verifying, nil
		default:
			x.ClearDue()
			s.o.refreshWoken(ctx, t.taken)
			return t.drop("message has no effect")
		}
	}
	observe.RecordTrace(ctx, t.out.Events)
	if verified, err := s.inline.Run(ctx, x, t.out.Events); err != nil || !verified {
		return verifying, err
	}
	return committing, nil
}

// commit commits the turn. If the turn is too large, the session tries a smaller one, or ends the execution.
func (s *session) commit(ctx context.Context) (state, error) {
	t := &s.turn
	if err := t.complete(ctx); err != nil {
		return t.block(t.wrap(err))
	}
	refused, err := t.write(ctx)
	if errors.Is(err, provider.ErrTooLarge) {
		switch {
		case t.halve():
			return verifying, nil // the coroutines have seen all inputs and must be rebuilt
		case s.x.Read() == nil:
			return verifying, nil // writeEnd needs the open tasks, which are in history
		case t.out.Continued != nil && s.x.State().Parked > 0:
			return t.block(&carryOverError{err})
		}
		refused, err = t.writeEnd(ctx, err)
	}
	if err != nil {
		return done, s.commitError(ctx, err, &t.commit, t.out.Waits)
	}
	if t.ranAhead {
		refused = append(s.queue.Refused(), refused...) // refused after the code has run
	}
	s.afterCommit(ctx, &t.commit, refused, t.consumed, t.out.Waits)
	return sending, nil
}

// send sends the inline activities that continue in their queues after the commit. Then the next execution begins, or
// the turn ends.
func (s *session) send(ctx context.Context) (state, error) {
	t := &s.turn
	if err := s.inline.Send(ctx); err != nil {
		return done, err
	}
	next, err := t.finish(ctx)
	if err != nil {
		return done, err
	}
	s.o.buffers.put(t.buffer, t.out.Events)
	if next == done { // another invocation continues
		s.discard()
	}
	return next, nil
}

// park handles messages that the code cannot or must not process. The messages are redelivered to other builds, parked
// in history, or end the instance.
func (s *session) park(ctx context.Context) (state, error) {
	t, x := &s.turn, s.x
	if !errors.Is(t.obstacle, execution.ErrPaused) {
		if !x.Verified() && !blocked.IsKnown(t.obstacle) { // the history may be outdated
			s.mismatch = blocked.MismatchOf(x, t.obstacle)
			return verifying, nil
		}
		x.DiscardCode(t.obstacle)
	}
	d, err := s.o.blocked.Decide(ctx, &blocked.Turn{
		InstanceID: s.item.InstanceID, Execution: x, Queue: &s.queue, Taken: t.taken, Attempts: &s.attempts,
		Poison: &s.poison, RunsInline: s.inline.Any(), Err: t.obstacle, Unencoded: t.unencoded,
	})
	switch {
	case err != nil:
		return done, err
	case d.Action == blocked.Fail:
		return done, t.obstacle
	case d.Action == blocked.Verify:
		return verifying, nil
	case d.Action == blocked.Drop:
		x.ClearDue()
		if x.Paused() {
			s.o.refreshWoken(ctx, t.taken)
			return t.drop("instance is paused, message has no effect")
		}
		return t.drop("instance is blocked, message has no effect")
	}

	if d.Events[len(d.Events)-1].Kind != history.InputsParked { // parking causes no outputs
		observe.RecordTrace(ctx, d.Events)
	}
	t.commit = x.NewTurn(s.item.InstanceID, d.Events)
	if d.Consumed > 0 {
		t.commit.Watermark = t.taken[d.Consumed-1].Position
	}
	err = s.commitEvents(ctx, &t.commit, d.Consumed)
	switch {
	case errors.Is(err, provider.ErrTooLarge) && s.queue.Halve(d.Consumed):
		return verifying, nil // each message alone fits into a commit (R2)
	case err != nil:
		return done, err
	}
	s.o.blocked.Committed(x)
	return acknowledging, nil
}

// pause commits a pause or a resume in a separate segment, before a turn that is due and before parked inputs. It skips
// a request without effect: a copy, a request for another incarnation, or a request for the status that the instance
// already has.
func (s *session) pause(ctx context.Context) (state, error) {
	m, x, clock := s.queue.First(), s.x, s.o.Clock
	request := blocked.PauseRequest(m)
	if !x.Recipient.Concerns(m) || !x.State().AppliesPause(&request) {
		if !x.Verified() {
			return verifying, nil
		}
		s.o.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID,
			"execution", x.Head().ExecutionID, "kind", m.Kind, "why", "message has no effect")
		s.queue.Consume(1)
		return acknowledging, nil
	}

	if err := s.inline.Release(ctx); err != nil {
		return done, err
	}
	events := x.Number(clock(), blocked.PauseEvents(request, s.queue.Refused(), clock())...)
	t := x.NewTurn(s.item.InstanceID, events)
	t.LockedUntil, t.Watermark = s.item.LockedUntil(), m.Position
	if err := s.commitEvents(ctx, &t, 1); err != nil {
		return done, err
	}
	s.o.blocked.ReportPause(ctx, s.item.InstanceID, x, &request)
	if !x.Paused() {
		return verifying, nil // the code is not loaded, and the message is the trigger of the turn that is due
	}
	x.DiscardCode(execution.ErrPaused)
	return acknowledging, nil
}
