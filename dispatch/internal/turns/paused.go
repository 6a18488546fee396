package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// An instance that somebody has paused goes the way of one that is blocked: its code is not run, and what arrives is parked
// in history. Unlike that one it waits for a message, and for no build (R25).

// errPaused is why the code of a paused execution is not there.
var errPaused = errors.New("dispatch: instance is paused, so its code does not run")

// isPaused reports whether somebody has paused the execution.
func isPaused(x *execution) bool { return x.state.Paused != nil }

// pauses reports whether a message pauses its instance, or has it go on.
func pauses(m *provider.InboxMessage) bool {
	return m != nil && (m.Kind == provider.MessageExecutionSuspended || m.Kind == provider.MessageExecutionResumed)
}

// turnEnd returns what reports whether a message is in no turn with those before it.
func turnEnd(x *execution) func(provider.InboxMessage) bool {
	return func(m provider.InboxMessage) bool { return x.notForCode(m) || x != nil && !x.over() && pauses(&m) }
}

// pauseOrResume takes the first message, which pauses the execution or has it go on, in a segment of its own. It comes before
// a turn that is due, and before inputs that are still parked: what has been paused does nothing more.
func pauseOrResume(ctx context.Context, s *session, m *provider.InboxMessage) (next, error) {
	order := pauseOrder(m)
	if !s.x.isFor(m) || !s.x.state.AppliesPause(&order) {
		return passPause(ctx, s, m)
	}

	if err := handStepsOver(ctx, s); err != nil {
		return goOn, err
	}
	events := s.x.numbered(s.o.options.Clock(), withRefused(s, order)...)
	t := s.x.newTurn(s.item.InstanceID, events)
	t.LockedUntil, t.Watermark = s.item.LockedUntil(), m.Position
	refused, err := s.o.provider.AckOrchestrationItem(ctx, &t)
	if err != nil {
		return goOn, unsent(ctx, s, err, &t)
	}

	s.committed(ctx, &t, refused, 1)
	about := []any{
		"instance", s.item.InstanceID, "execution", s.x.head.ExecutionID, "by", order.RequestedBy,
		"message", order.Message, "parked", s.x.state.Parked,
	}
	if !isPaused(s.x) {
		s.o.options.Logger.InfoContext(ctx, "instance resumed", append(about, "event", logevent.InstanceResumed)...)
		return verify, nil // its code is not there; the message leads to the turn that is due
	}
	s.o.options.Logger.InfoContext(ctx, "instance paused", append(about, "event", logevent.InstancePaused)...)
	s.x.breakOff(errPaused)
	s.consume(0)
	return goOn, nil
}

// withRefused is an order, and the outputs whose failure is to be recorded: they are parked on that side of it on which the instance is paused, since
// elsewhere what is parked is so because of a build.
func withRefused(s *session, order history.Event) []history.Event {
	failed := failures(s.backlog.refused)
	if len(failed) == 0 {
		return []history.Event{order}
	}
	parked := parkedNow(s.o, history.Event{Kind: history.InputsParked, Inputs: failed})
	if order.Kind == history.ExecutionResumed {
		return []history.Event{parked, order}
	}
	return []history.Event{order, parked}
}

// passPause passes over an order that changes nothing: the instance is so already, or the message is a copy, or for another life of the id.
func passPause(ctx context.Context, s *session, m *provider.InboxMessage) (next, error) {
	if !s.x.verified {
		return verify, nil
	}
	s.o.options.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID,
		"execution", s.x.head.ExecutionID, "kind", m.Kind, "why", "message has no effect")
	s.consume(1)
	return goOn, nil
}

// pauseOrder is what a message has history record.
func pauseOrder(m *provider.InboxMessage) history.Event {
	e := history.Event{
		Kind: history.ExecutionSuspended, EventID: m.EventID, Message: history.TruncateCancelMessage(m.Text), RequestedBy: history.Requester(m.RequestedBy),
		TraceParent: m.TraceParent,
	}
	if m.Kind == provider.MessageExecutionResumed {
		e.Kind = history.ExecutionResumed
	}
	return e
}

// parkPaused parks what arrives for a paused instance, unless it ends it.
func parkPaused(ctx context.Context, s *session) (next, error) {
	b := &blocking{s: s, err: errPaused, known: true, taken: s.taken()}
	return b.resolve(ctx)
}

// dropParked gives up messages that bring nothing to an instance whose code is not run.
func (b *blocking) dropParked(ctx context.Context) {
	s := b.s
	s.x.idle()
	if !isPaused(s.x) {
		s.drop(ctx, "instance is blocked, message has no effect")
		return
	}
	refreshWoken(ctx, s, b.taken)
	s.drop(ctx, "instance is paused, message has no effect")
}
