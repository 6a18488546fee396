package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// UnregisteredError means that the instance's orchestration is not in this build's registry.
type UnregisteredError struct {
	InstanceID, Name, Version string
}

func (e *UnregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("instance %q: orchestration %q is not registered in this build", e.InstanceID, e.Name)
	}
	return fmt.Sprintf("instance %q: orchestration %q version %q is not registered in this build", e.InstanceID, e.Name, e.Version)
}

// triesBeforeBlocked is how many deliveries of a message may fail because of the orchestration's code, before the instance is
// blocked: another environment may be of another build (R18).
const triesBeforeBlocked = 3

// cannot deals with code that cannot take the turn: err says why. Its messages are delivered again, for another build to take;
// then they are set aside in history, so that the instance stalls nobody, and wait there for code that can.
func (s *session) cannot(ctx context.Context, err error) error {
	why := diagnosis(err)
	if why == nil {
		return err
	}
	if !s.x.verified {
		return errUnverified
	}
	s.x.broken = err
	s.x.close()
	end := s.endBlocked(why)
	var events []history.Event
	switch {
	case end != nil && s.x.read == nil:
		return errUnverified // what is outstanding stands in history alone
	case end != nil:
		events = s.events(s.given(*end)...)
	case why.Type == history.TypePoison:
		if err := s.keep(ctx, why); err != nil {
			return err
		}
		events = s.park(why)
	case s.deliveries() < triesBeforeBlocked:
		return err
	default:
		events = s.park(why)
	}
	if events == nil {
		s.drop(ctx, "the instance is blocked, and it brings nothing")
		return nil
	}
	s.o.options.Logger.ErrorContext(ctx, "the orchestration's code cannot go on", "instance", s.item.InstanceID, "buildId", s.o.options.BuildID,
		"attemptCount", s.deliveries(), "historyEndsWith", events[len(events)-1].Kind, "error", err)
	return s.commitBlocked(ctx, events)
}

// deliveries is how often the first message that is not done with has been delivered.
func (s *session) deliveries() int {
	if s.acked == len(s.item.Messages) {
		return 0
	}
	return s.item.Messages[s.acked].Record.ReceiveCount
}

// diagnosis is what a failure of the code is called; nil when err is none.
func diagnosis(err error) *history.Failure {
	if e, ok := errors.AsType[*replay.NondeterminismError](err); ok {
		return &history.Failure{Type: history.TypeNondeterminism, Message: e.Error(), Expected: e.Expected, Got: e.Got, EventID: e.EventID}
	}
	if e, ok := errors.AsType[*PoisonError](err); ok {
		return &history.Failure{Type: history.TypePoison, Message: e.Error()}
	}
	if e, ok := errors.AsType[*UnregisteredError](err); ok {
		return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
	}
	if e, ok := errors.AsType[*replay.UnregisteredError](err); ok {
		return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return &history.Failure{Type: history.TypeBlockedOutside, Message: firstLine(e)}
	}
	if e, ok := errors.AsType[*replay.ForeignGoroutineError](err); ok {
		return &history.Failure{Type: history.TypeForeignGoroutine, Message: firstLine(e)}
	}
	return nil
}

// firstLine leaves the stack to the log.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// endBlocked is the end of an instance whose code is not needed for it: it is terminated, or its code wants to fail.
func (s *session) endBlocked(why *history.Failure) *history.Event {
	for i := range s.taken() {
		for _, in := range s.inputsOf(&s.rest[i]) {
			if in.Kind == history.OrchestrationTerminated {
				return &in
			}
		}
	}
	if s.x.failOnNondeterminism && why.Type == history.TypeNondeterminism {
		return &history.Event{Kind: history.OrchestrationFailed, Error: why}
	}
	return nil
}

// terminateDamaged ends an instance whose history cannot be read, where a message asks for it: no code is needed for that.
func (s *session) terminateDamaged(ctx context.Context, failed error) error {
	s.discard()
	taken := s.taken()
	i := slices.IndexFunc(taken, func(m provider.InboxMessage) bool { return m.Kind == provider.MessageTerminate })
	if i < 0 {
		return failed
	}
	if err := s.load(ctx, provider.Strong); !errors.Is(err, provider.ErrCorrupt) {
		return err // it was the read that was damaged
	}
	if err := s.o.provider.TerminateDamaged(ctx, &taken[i]); err != nil {
		return err
	}
	s.o.options.Logger.WarnContext(ctx, "an instance whose history cannot be read was terminated", "instance", s.item.InstanceID, "error", failed)
	s.drop(ctx, "the instance is over")
	return nil
}

// given puts before an end that no code took part in what it gives up: all that the history which was read left outstanding.
func (s *session) given(end history.Event) []history.Event {
	return append(history.CancelOutstanding(provider.EventsOf(s.x.read.Segments), history.TerminalReason(end.Kind)), end)
}

// park is the event that keeps the inputs and says what is wrong; nil when history ends with it already, of this build, and
// nothing came.
func (s *session) park(why *history.Failure) []history.Event {
	parked := history.Event{Kind: history.InputsParked, Error: why, BuildID: s.o.options.BuildID, Inputs: failures(s.refused)}
	for i := range s.taken() {
		parked.Inputs = append(parked.Inputs, s.inputsOf(&s.rest[i])...)
	}
	if len(parked.Inputs) == 0 && s.x.blockedBy == s.o.options.BuildID {
		return nil
	}
	now := s.o.options.Clock().UTC()
	for i := range parked.Inputs {
		parked.Inputs[i].Time = now
	}
	return s.events(parked)
}

// events numbers the events of a turn that no code took part in.
func (s *session) events(events ...history.Event) []history.Event {
	now := s.o.options.Clock().UTC()
	for i := range events {
		events[i].ID, events[i].Time = s.x.lastID+1+int64(i), now
	}
	return events
}

// commitBlocked consumes all messages but those behind a start.
func (s *session) commitBlocked(ctx context.Context, events []history.Event) error {
	t := s.newTurn(events)
	n := len(s.taken())
	if n > 0 {
		t.Watermark = s.rest[n-1].Position
	}
	refused, err := s.o.provider.AckOrchestrationItem(ctx, t)
	if errors.Is(err, provider.ErrTooLarge) && n > 1 { // each message by itself is not (R2)
		s.most = n / 2
		return errTooMany
	}
	if err != nil {
		return err
	}
	s.moved(t, refused, n)
	s.x.blockedBy = blockedBy(events)
	if s.x.over = events[len(events)-1].Kind.Terminal(); s.x.over {
		s.refused = nil
	}
	s.settle()
	return nil
}

// blockedBy is the build that a history ends blocked in; empty when it does not.
func blockedBy(events []history.Event) string {
	if last := &events[len(events)-1]; last.Kind == history.InputsParked {
		return last.BuildID
	}
	return ""
}

// taken are the messages of the next turn: up to one that is not for the code.
func (s *session) taken() []provider.InboxMessage {
	taken := s.rest
	if i := slices.IndexFunc(taken, s.apart); i >= 0 {
		taken = taken[:i]
	}
	if s.most > 0 && s.most < len(taken) {
		taken = taken[:s.most]
	}
	return taken
}
