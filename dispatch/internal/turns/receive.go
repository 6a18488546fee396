package turns

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/mailbox"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// receive selects the next state by the waiting messages.
func (s *session) receive(ctx context.Context) (state, error) {
	first, x := s.queue.First(), s.x
	switch {
	case s.isDone():
		return done, nil
	case s.mustStart(first):
		return starting, nil
	case first != nil && first.IsRefresh():
		s.o.refreshStatus(ctx, &first.Message)
		s.queue.Consume(1)
		return acknowledging, nil
	case s.absent && first != nil && mailbox.ExpectsResponse(first):
		return responding, nil
	case x == nil:
		return loading, nil
	case !x.Verified() && x.IsBehind(s.queue.Waiting()):
		return verifying, nil
	}
	if !s.isDispatched() {
		if _, ok := redispatchFrom(x, s.queue.Waiting()); ok {
			return redispatching, nil
		}
	}
	return deciding, nil
}

// start creates the instance of a start message. If its ID is in use, the sender gets a refusal (R10).
func (s *session) start(ctx context.Context) (state, error) {
	m := s.queue.First()
	if err := s.o.payloads.Start(ctx, m); err != nil {
		return done, err
	}
	read, err := s.o.Provider.CreateOrchestration(ctx, m)
	created := err == nil
	switch {
	case errors.Is(err, provider.ErrAlreadyExists):
		if err := s.o.Provider.RejectStart(ctx, m); err != nil {
			return done, err
		}
		s.o.Logger.WarnContext(ctx, "start rejected: instance ID in use", "event", logevent.StartRefused,
			"instance", m.InstanceID, "startId", m.StartID)
	case err != nil:
		return done, err
	default:
		s.discard()
		if err = s.loadFrom(ctx, read); err != nil {
			return done, err
		}
	}
	s.setFound()
	if created && s.hadTurnBy(m) {
		return receiving, nil // a redelivery: outputs of the turn may be unsent (R4)
	}
	s.queue.Consume(1)
	return acknowledging, nil
}

// load reads the history. An eventually consistent read is sufficient if a commit follows (R8).
func (s *session) load(ctx context.Context) (state, error) {
	c := s.queue.FirstRead()
	err := s.read(ctx, c)
	if errors.Is(err, provider.ErrNotFound) && c == provider.Eventual {
		return verifying, nil
	}
	return receiving, err
}

// verify reads the history with strong consistency. If the head differs from the verified one of this session, such as
// after a conflict, all unacknowledged messages are processed again.
func (s *session) verify(ctx context.Context) (state, error) {
	seen := provider.Head{}
	if s.x != nil && s.x.Verified() {
		seen = s.x.Head()
	}
	unsent := s.inline.Drop() // a redispatch sends them
	s.discard()
	err := s.read(ctx, provider.Strong)
	s.o.blocked.ReportMismatch(ctx, s.item.InstanceID, s.mismatch, s.x)
	s.mismatch = blocked.Mismatch{}
	if err == nil && (unsent || seen != (provider.Head{}) && s.x.Head() != seen) {
		s.reset()
	}
	return receiving, err
}

// redispatch sends the outputs that an earlier invocation may have left unsent, before any turn (R4, I4).
func (s *session) redispatch(ctx context.Context) (state, error) {
	if !s.x.Verified() || s.x.Read() == nil {
		return verifying, nil
	}
	since, _ := redispatchFrom(s.x, s.queue.Waiting())
	refused, err := s.o.Provider.RedispatchOrchestration(ctx, s.x.Read(), since)
	if err != nil {
		return done, fmt.Errorf("dispatch: instance %q: redispatch: %w", s.item.InstanceID, err)
	}
	s.dispatched = s.x.Head()
	s.queue.Refuse(refused...)
	s.queue.ConsumeCovered(s.x.Head().Watermark)
	return acknowledging, nil
}

// decide selects the effect of messages that no turn has consumed.
func (s *session) decide(ctx context.Context) (state, error) {
	if err := s.o.mailbox.Prepare(ctx, s.item.InstanceID, s.x, &s.queue); err != nil {
		return done, err
	}
	first, x := s.queue.First(), s.x
	mustRespond := mailbox.MustRespond(x, first)
	switch {
	case (x.Ended() || mustRespond) && !x.Verified():
		return verifying, nil
	case mustRespond:
		return responding, nil
	case x.Ended():
		return s.turn.drop("instance has ended")
	case first != nil && execution.IsPauseRequest(first):
		return pausing, nil
	}
	s.turn.begin(&s.instance)
	next, err := s.turn.prepare(ctx)
	if err != nil || next != running {
		return next, err
	}
	if x.Paused() {
		return s.turn.block(execution.ErrPaused)
	}
	s.observed.Begin()
	if broken := x.Code.Broken(); broken != nil {
		return s.turn.block(broken)
	}
	if err := s.poison.BeforeCode(ctx, x.Head().ExecutionID, false, &s.queue); err != nil {
		return s.turn.block(err)
	}
	return running, nil
}

// respond responds to another instance whose message the code must not receive.
func (s *session) respond(ctx context.Context) (state, error) {
	r := s.receiver()
	result, err := s.o.mailbox.Respond(ctx, &r, s.queue.Waiting())
	switch {
	case err != nil:
		return done, err
	case result.IDInUse:
		s.idInUse, s.absent = true, false
		return receiving, nil
	case result.Started != nil:
		s.discard()
		if err := s.loadFrom(ctx, result.Started); err != nil {
			return done, err
		}
		s.setFound()
	}
	s.queue.Consume(result.Consumed)
	return acknowledging, nil
}

// drop drops the messages of the next turn, whose position was verified in this invocation. Messages that the code does
// not receive, and the messages behind them, are processed next.
func (s *session) drop(ctx context.Context) (state, error) {
	dropped := s.taken()
	for i := range dropped {
		s.o.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID,
			"execution", dropped[i].ExecutionID, "kind", dropped[i].Kind, "why", s.turn.noEffect)
	}
	s.queue.ClearRefused()
	s.queue.Consume(len(dropped))
	return acknowledging, nil
}

// acknowledge acknowledges the consumed messages. It does not if a turn is due or inline activities run, because a
// redelivery of the messages must then continue the instance.
func (s *session) acknowledge(context.Context) (state, error) {
	if (s.x == nil || !s.x.Due()) && !s.inline.Any() {
		s.queue.Acknowledge()
	}
	return receiving, nil
}

// resolveConflict reads the head after another session has committed. That commit may be the turn of a message that
// this session has consumed or redispatched. The process of the other session may have crashed before it sent the
// outputs. All unacknowledged messages are therefore processed again (R4).
func (s *session) resolveConflict(ctx context.Context) (state, error) {
	s.discard()
	s.reset()
	return receiving, s.read(ctx, provider.Strong)
}
