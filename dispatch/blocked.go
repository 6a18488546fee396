package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// then they are set aside in history, so that the instance stalls nobody, and wait there for code that can. Where history knows
// already that this build cannot, they are set aside at once.
func (s *session) cannot(ctx context.Context, err error) error {
	why := diagnosis(err)
	if why == nil {
		return err
	}
	_, known := errors.AsType[*hopelessError](err)
	if !s.x.verified && !known {
		return errUnverified // the code failed on a history that may be old; that it is hopeless leads to nothing but a commit
	}
	s.x.broken = err
	s.x.close()
	var events []history.Event
	end := s.endBlocked(why)
	switch {
	case s.early(why, known, end):
		return err
	case end != nil && s.x.read == nil:
		return errUnverified // what is outstanding stands in history alone
	case end != nil:
		events = s.events(s.given(*end)...)
	default:
		if err := s.keepPoison(ctx, why); err != nil {
			return err
		}
		events = s.park(why, known)
	}
	if events == nil {
		if !s.x.verified {
			return errUnverified
		}
		s.drop(ctx, "the instance is blocked, and it brings nothing")
		return nil
	}
	s.reportBlocked(ctx, err, known, events[len(events)-1].Kind)
	return s.commitBlocked(ctx, events)
}

// early reports whether the messages are to be delivered again, so that an environment of another build may take them. What is
// blocked already can be parked at once, since the watch has other builds try it; what fails cannot be undone.
func (s *session) early(why *history.Failure, known bool, end *history.Event) bool {
	switch {
	case known || why.Type == history.TypePoison || s.deliveries() >= triesBeforeBlocked:
		return false
	case end != nil:
		return end.Kind == history.OrchestrationFailed
	default:
		return !s.x.blocked.is
	}
}

// keepPoison copies poison to the dead letters before it is parked.
func (s *session) keepPoison(ctx context.Context, why *history.Failure) error {
	if why.Type != history.TypePoison {
		return nil
	}
	return s.keep(ctx, why)
}

// reportBlocked logs that the code was not run to its end. What is parked without it is told quietly: there may be thousands of it.
func (s *session) reportBlocked(ctx context.Context, err error, known bool, end history.Kind) {
	level, text := slog.LevelError, "the orchestration's code cannot go on"
	if known && end == history.InputsParked {
		level, text = slog.LevelDebug, "messages are parked: the instance is blocked in this build"
	}
	s.o.options.Logger.Log(ctx, level, text, "instance", s.item.InstanceID, "buildId", s.o.options.BuildID,
		"attemptCount", s.deliveries(), "historyEndsWith", end, "error", err)
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
	if e, ok := errors.AsType[*hopelessError](err); ok {
		return e.why
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
	if e, ok := errors.AsType[*replay.FetchError](err); ok && (errors.Is(e, provider.ErrCorrupt) || errors.Is(e, provider.ErrNotFound)) {
		return &history.Failure{Type: history.TypeCorrupt, Message: e.Error()} // any other is the store's, and is tried again
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return &history.Failure{Type: history.TypeBlockedOutside, Message: at(e, e.Stack)}
	}
	if e, ok := errors.AsType[*replay.ForeignGoroutineError](err); ok {
		return &history.Failure{Type: history.TypeForeignGoroutine, Message: at(e, e.Stack)}
	}
	return nil
}

// at is an error without its stack, which is left to the log, but for where in it the code was.
func at(err error, stack string) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	where := replay.Where(stack)
	if where == "" {
		return strings.TrimSuffix(line, ":")
	}
	return line + " " + where
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

// park is the event that keeps the inputs and says what is wrong; nil when history says so already, of this build, and nothing came.
// What is known to be hopeless in several builds stays blocked in the one that said so last, unless a wake asks this one: so the
// environments of a rollout do not each say it anew in turn, and the watch hears of the build that it has asked.
func (s *session) park(why *history.Failure, known bool) []history.Event {
	parked := history.Event{Kind: history.InputsParked, Error: why, BuildID: s.o.options.BuildID, Inputs: failures(s.refused)}
	woken := false
	for i := range s.taken() {
		parked.Inputs = append(parked.Inputs, s.inputsOf(&s.rest[i])...)
		woken = woken || s.rest[i].Kind == provider.MessageWake
	}
	if known && !woken {
		parked.Error, parked.BuildID = s.x.blocked.why, s.x.blocked.build
	}
	if len(parked.Inputs) == 0 && s.x.blocked.says(&parked) {
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
	t.StaysBlocked = s.x.blocked.says(&events[len(events)-1])
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
	s.tellCancels(ctx, t)
	s.moved(t, refused, n)
	if why := s.x.blocked.hopeless(s.o.options.BuildID); why != nil {
		s.x.broken = &hopelessError{why} // what comes next is parked without another try
	}
	if s.x.over = events[len(events)-1].Kind.Terminal(); s.x.over {
		s.refused = nil
	}
	s.settle()
	return nil
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
