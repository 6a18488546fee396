package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// session is one item's way through the protocol:
//
//	RECEIVED -> LOADED(warm | verified) -> RUN -> COMMITTED -> DISPATCHED -> ACKED
//	            RUN -> DROPPED (verified only) -> ACKED
//	            RUN -> CONFLICT -> LOADED(verified);   any failure -> not acked, redelivered
type session struct {
	o    *Orchestrator
	item *provider.OrchestrationItem
	// rest is what no turn has consumed yet.
	rest []provider.InboxMessage
	// acked counts the item's messages that are done with: all they caused is sent, or recorded as failed (I3).
	acked int
	// refused are outputs that can never be sent: the next turn records their failure (R9).
	refused      []provider.OutputFailure
	x            *execution
	redispatched bool
	// most bounds how many messages a turn takes, once a larger one was too large for a commit; 0 does not.
	most int
}

// conflictLimit ends an invocation that always comes second; its messages are delivered again.
const conflictLimit = 8

// run takes turns until nothing is left. On an error, what is not acked has to be delivered again.
func (s *session) run(ctx context.Context) error {
	s.x = s.o.cache.take(s.item.InstanceID)
	defer s.leave()
	for conflicts := 0; len(s.rest) > 0 || len(s.refused) > 0; {
		err := s.advance(ctx)
		switch {
		case errors.Is(err, provider.ErrConflict) && conflicts < conflictLimit:
			conflicts++
			s.rewind()
			err = s.load(ctx, provider.Strong)
		case errors.Is(err, errUnverified), errors.Is(err, errTooMany):
			s.discard()
			err = s.load(ctx, provider.Strong)
		}
		if err != nil {
			s.discard()
			if errors.Is(err, provider.ErrNotFound) {
				return s.drop(ctx, "no such execution")
			}
			return err
		}
	}
	return nil
}

// errUnverified: what is to be done needs a strongly consistent look at the head first (R5).
var errUnverified = errors.New("dispatch: the state is not verified")

// rewind begins anew with what is not acked. Somebody else has committed in between, perhaps the very turn of a message that
// was passed or redispatched before, and perhaps died before sending: only the head, read again, tells (R4).
func (s *session) rewind() {
	s.discard()
	s.rest, s.refused, s.redispatched = s.item.Messages[s.acked:], nil, false
}

// errTooMany: the turn does not fit a commit. Fewer messages may; the coroutine has seen them all and must be revived.
var errTooMany = errors.New("dispatch: the turn took more messages than a commit can hold")

// advance makes one step: a look, a dispatch that is repeated, or a turn.
func (s *session) advance(ctx context.Context) error {
	if s.x == nil {
		return s.load(ctx, s.firstLook())
	}
	if !s.x.verified && s.ahead() {
		return errUnverified
	}
	if from, ok := s.redelivered(); ok {
		return s.redispatch(ctx, from)
	}
	if s.x.over {
		if !s.x.verified {
			return errUnverified
		}
		return s.drop(ctx, "the instance is over")
	}
	return s.turn(ctx)
}

// firstLook is cheap where a commit will check it (R8); for messages that were delivered before it would be wasted.
func (s *session) firstLook() provider.Consistency {
	for i := range s.rest {
		if s.rest[i].Record.ReceiveCount > 1 {
			return provider.Strong
		}
	}
	return provider.Eventual
}

func (s *session) load(ctx context.Context, c provider.Consistency) error {
	read, err := s.o.provider.ReadOrchestration(ctx, s.item, c)
	if errors.Is(err, provider.ErrNotFound) && c == provider.Eventual {
		return errUnverified
	}
	if err != nil {
		return err
	}
	s.x, err = s.o.revive(read)
	return err
}

// ahead: some message was sent after the segment this view ends with (R5).
func (s *session) ahead() bool {
	for i := range s.rest {
		if s.rest[i].ExecutionID == s.x.head.ExecutionID && s.rest[i].Segment > s.x.head.Segment {
			return true
		}
	}
	return false
}

// redelivered finds the first message that a committed turn has consumed before (R4).
func (s *session) redelivered() (provider.Position, bool) {
	for i := range s.rest {
		if s.x.head.Watermark.Covers(s.rest[i].Position) && !s.redispatched {
			return s.rest[i].Position, true
		}
	}
	return provider.Position{}, false
}

// redispatch finishes what an earlier invocation may have left unsent, before any turn (R4, I4).
func (s *session) redispatch(ctx context.Context, from provider.Position) error {
	if !s.x.verified || s.x.read == nil {
		return errUnverified
	}
	refused, err := s.o.provider.RedispatchOrchestration(ctx, s.x.read, from)
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: redispatch: %w", s.item.InstanceID, err)
	}
	s.redispatched = true
	s.refused = append(s.refused, refused...)
	for len(s.rest) > 0 && s.x.head.Watermark.Covers(s.rest[0].Position) {
		s.rest = s.rest[1:]
	}
	s.settle()
	return nil
}

// turn runs the body over what is left, up to the message that ends the execution (R2).
func (s *session) turn(ctx context.Context) error {
	taken := s.rest
	if s.most > 0 && s.most < len(taken) {
		taken = taken[:s.most]
	}
	inputs := make([][]history.Event, 0, len(taken)+1)
	inputs = append(inputs, failures(s.refused))
	for i := range taken {
		inputs = append(inputs, s.inputsOf(&taken[i]))
	}
	out, err := s.x.instance.Turn(replay.Turn{Now: s.o.options.Clock().UTC(), Version: s.x.version, BuildID: s.o.options.BuildID, Inputs: inputs})
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: turn: %w", s.item.InstanceID, err)
	}
	if len(out.Events) == 0 {
		if !s.x.verified {
			return errUnverified
		}
		return s.pass(ctx, len(taken))
	}
	return s.commit(ctx, out)
}

// commit makes the turn durable and sends what it decided. Only then are its messages done.
func (s *session) commit(ctx context.Context, out replay.Outcome) error {
	consumed := max(out.Consumed-1, 0) // the first group was the refused outputs
	if out.Ended && len(s.rest) > 0 {
		consumed = max(consumed, 1) // a body that ended at once was started by the first message: it must be known as the trigger (R4)
	}
	t := &provider.Turn{InstanceID: s.item.InstanceID, Head: s.x.head, Watermark: s.x.head.Watermark, Events: out.Events}
	if consumed > 0 {
		t.Watermark = s.rest[consumed-1].Position
	}
	refused, err := s.o.provider.AckOrchestrationItem(ctx, t)
	if errors.Is(err, provider.ErrTooLarge) {
		if consumed > 1 { // outcomes that came together, each of a legal size: a turn of fewer is as good (R2)
			s.most = consumed / 2
			return errTooMany
		}
		out.Ended = true
		t.Events = tooLarge(out.Events, err)
		refused, err = s.o.provider.AckOrchestrationItem(ctx, t)
	}
	if err != nil {
		return err
	}
	s.x.head, s.x.verified, s.x.read = t.Next(), true, nil
	s.refused, s.rest = refused, s.rest[consumed:]
	if out.Ended {
		s.x.over, s.refused = true, nil
		s.x.close()
	}
	s.settle()
	return nil
}

// settle counts as done what is consumed, unless outputs of it were refused and wait to be recorded.
func (s *session) settle() {
	if len(s.refused) == 0 {
		s.acked = len(s.item.Messages) - len(s.rest)
	}
}

// drop gives up what is left: its place was looked at, strongly consistent, in this invocation.
func (s *session) drop(ctx context.Context, why string) error {
	for i := range s.rest {
		s.o.options.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID, "kind", s.rest[i].Kind, "why", why)
	}
	s.rest, s.refused = nil, nil
	s.settle()
	return nil
}

// pass gives up messages that do not concern the orchestration any more.
func (s *session) pass(ctx context.Context, n int) error {
	if n == len(s.rest) {
		return s.drop(ctx, "nothing in it concerns the orchestration any more")
	}
	s.rest, s.refused = s.rest[n:], nil
	s.settle()
	return nil
}

// discard unwinds coroutines whose commit is not confirmed (R6).
func (s *session) discard() {
	if s.x != nil {
		s.x.close()
		s.x = nil
	}
}

// leave keeps the execution warm for its next turn.
func (s *session) leave() {
	if s.x == nil || s.x.over || s.x.instance == nil {
		return
	}
	s.x.verified, s.x.read = false, nil
	s.o.cache.put(s.item.InstanceID, s.x)
}
