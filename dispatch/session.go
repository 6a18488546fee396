package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	refused []provider.OutputFailure
	x       *execution
	// sent is the head up to which this session knows everything to be sent: it has done so, or has repeated it.
	sent   provider.Head
	absent bool // there is no such instance: looked at, strongly consistent
	// most bounds how many messages a turn takes, once a larger one was too large for a commit; 0 does not.
	most int
	// mostParked bounds so how many of the parked inputs it takes.
	mostParked int
	// continued counts the executions that this invocation has begun by continue-as-new.
	continued int
	// alone: no other code runs in the process meanwhile.
	alone   bool
	attempt attempt
	// verdicts are what became of the failed attempts that messages tell of (R14).
	verdicts map[told]verdict
}

// conflictLimit ends an invocation that always comes second; its messages are delivered again.
const conflictLimit = 8

// run takes turns until nothing is left. On an error, what is not acked has to be delivered again.
func (s *session) run(ctx context.Context) error {
	s.x = s.o.cache.take(s.item.InstanceID)
	defer s.leave()
	for conflicts := 0; s.unfinished(); {
		err := s.advance(ctx)
		switch {
		case errors.Is(err, provider.ErrConflict) && conflicts < conflictLimit:
			conflicts++
			s.rewind()
			err = s.load(ctx, provider.Strong)
		case errors.Is(err, errUnverified), errors.Is(err, errTooMany):
			err = s.reload(ctx)
		}
		if errors.Is(err, provider.ErrCorrupt) {
			err = s.terminateDamaged(ctx, err)
		}
		if err != nil {
			s.discard()
			switch {
			case errors.Is(err, provider.ErrNotFound):
				s.absent = true
				s.drop(ctx, "no such instance")
			case !errors.Is(err, errContinuesOn) || len(s.rest) > 0:
				return err
			}
		}
	}
	return nil
}

// unfinished: there are messages to consume, outputs whose failure is to be recorded, or an execution that has had no turn.
func (s *session) unfinished() bool {
	return len(s.rest) > 0 || len(s.refused) > 0 || s.x != nil && s.x.due
}

// errUnverified: what is to be done needs a strongly consistent look at the head first (R5).
var errUnverified = errors.New("dispatch: the state is not verified")

// rewind begins anew with what is not acked. Somebody else has committed in between, perhaps the very turn of a message that
// was passed or redispatched before, and perhaps died before sending: only the head, read again, tells (R4).
func (s *session) rewind() {
	s.discard()
	s.forget()
}

// forget takes up again all that is not acked.
func (s *session) forget() {
	s.rest, s.refused, s.sent, s.absent = s.item.Messages[s.acked:], nil, provider.Head{}, false
	s.rejudge()
}

// reload reads the head anew. It may be another than the one that this session has seen, as after a conflict.
func (s *session) reload(ctx context.Context) error {
	seen := provider.Head{}
	if s.x != nil && s.x.verified {
		seen = s.x.head
	}
	s.discard()
	err := s.load(ctx, provider.Strong)
	if err == nil && seen != (provider.Head{}) && s.x.head != seen {
		s.forget()
	}
	return err
}

// advance makes one step: a start, a look, a dispatch that is repeated, an answer, or a turn.
func (s *session) advance(ctx context.Context) error {
	switch {
	case s.startsFirst():
		return s.start(ctx)
	case len(s.rest) > 0 && s.rest[0].IsRefresh():
		s.refresh(ctx, &s.rest[0].Message)
		s.rest = s.rest[1:]
		s.settle()
		return nil
	case s.absent && len(s.rest) > 0 && isParentsCancel(&s.rest[0]):
		return s.refuseCancel(ctx)
	case s.x == nil:
		return s.load(ctx, s.firstLook())
	case !s.x.verified && s.ahead():
		return errUnverified
	}
	if from, ok := s.redelivered(); ok {
		return s.redispatch(ctx, from)
	}
	return s.proceed(ctx)
}

// proceed deals with messages that no turn has consumed.
func (s *session) proceed(ctx context.Context) error {
	foreign := len(s.rest) > 0 && isParentsCancel(&s.rest[0]) && s.apart(s.rest[0])
	switch {
	case (s.x.over || foreign) && !s.x.verified:
		return errUnverified
	case foreign:
		return s.answerCancel(ctx)
	case s.x.over:
		s.drop(ctx, "the instance is over")
		return nil
	}
	if err := s.retry(ctx); err != nil {
		return err
	}
	if s.x.broken != nil {
		if skipped, err := s.skip(); skipped || err != nil {
			return err
		}
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
	return s.revive(ctx, read)
}

// startsFirst: the next message asks for the instance to be made, and was not delivered before. One that was is, most likely,
// consumed: the head tells (R4).
func (s *session) startsFirst() bool {
	if len(s.rest) == 0 || s.rest[0].Kind != provider.MessageStart {
		return false
	}
	if s.rest[0].PickedUp != nil && !s.absent && !s.isSent() {
		return false
	}
	return s.x == nil && (s.absent || s.rest[0].Record.ReceiveCount <= 1) || s.x != nil && !s.x.head.Watermark.Covers(s.rest[0].Position)
}

// start makes the instance. When its id is in use, that is for its sender to hear (R10).
func (s *session) start(ctx context.Context) error {
	m := &s.rest[0]
	read, err := s.o.provider.CreateOrchestration(ctx, m)
	switch {
	case errors.Is(err, provider.ErrAlreadyExists):
		if err := s.o.provider.RefuseStart(ctx, m); err != nil {
			return err
		}
		s.o.options.Logger.WarnContext(ctx, "a start was refused: the instance id is in use", "instance", m.InstanceID, "startId", m.StartID)
	case err != nil:
		return err
	default:
		s.discard()
		if err = s.revive(ctx, read); err != nil {
			return err
		}
	}
	s.rest, s.absent, s.sent = s.rest[1:], false, provider.Head{} // what is there may have consumed what comes behind, and more
	s.settle()
	return nil
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

// isSent reports whether this session knows all that the view holds to be sent.
func (s *session) isSent() bool { return s.x != nil && s.sent == s.x.head }

// redelivered finds the first message that a committed turn has consumed before, or else one that stands for the turn which no message
// leads to: the head's, where it took parked inputs alone (R4).
func (s *session) redelivered() (provider.Position, bool) {
	if s.isSent() {
		return provider.Position{}, false
	}
	if i := slices.IndexFunc(s.rest, func(m provider.InboxMessage) bool { return m.PickedUp != nil }); i >= 0 {
		return s.before(s.rest[i].Position), true
	}
	for i := range s.rest {
		if s.x.head.Watermark.Covers(s.rest[i].Position) {
			return s.rest[i].Position, true
		}
	}
	// What is warm was sent before it was kept.
	return s.x.head.Watermark, s.x.read != nil && s.x.parked.alone
}

// before is the place of a message that was picked up from the dead letters: its number is new, and nothing tells the old one. A turn
// that has consumed it, and whose outputs were never sent, is of this execution or ended the one before.
func (s *session) before(picked provider.Position) provider.Position {
	if s.x.read != nil {
		if first := s.x.read.Segments[0].Watermark; first.Inbox == picked.Inbox {
			return first
		}
	}
	return provider.Position{Inbox: picked.Inbox, Sequence: "0"}
}

// redispatch finishes what an earlier invocation may have left unsent, before any turn (R4, I4).
func (s *session) redispatch(ctx context.Context, from provider.Position) error {
	if !s.x.verified || s.x.read == nil {
		return errUnverified
	}
	s.x.read.Retention = s.x.retention
	refused, err := s.o.provider.RedispatchOrchestration(ctx, s.x.read, from)
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: redispatch: %w", s.item.InstanceID, err)
	}
	s.sent = s.x.head
	s.refused = append(s.refused, refused...)
	for len(s.rest) > 0 && s.x.head.Watermark.Covers(s.rest[0].Position) {
		s.rest = s.rest[1:]
	}
	s.settle()
	return nil
}

// turn runs the body over what is left, up to the message that ends the execution (R2).
func (s *session) turn(ctx context.Context) error {
	if s.x.broken != nil {
		return s.cannot(ctx, s.x.broken)
	}
	if err := s.watch(ctx, s.x.head.ExecutionID, false); err != nil {
		return s.cannot(ctx, err)
	}
	taken := s.taken()
	inputs := make([][]history.Event, 0, len(taken)+1)
	inputs = append(inputs, failures(s.refused))
	for i := range taken {
		inputs = append(inputs, s.inputsOf(&taken[i]))
	}
	s.x.fetch = s.o.fetch(ctx, s.item.InstanceID)
	out, err := s.x.instance.Turn(replay.Turn{
		Now: s.o.options.Clock().UTC(), Version: s.x.version, BuildID: s.o.options.BuildID, Inputs: inputs, MostParked: s.mostParked,
		Commits: s.x.blocked.is || s.x.parked.alone, // its status goes on, or something leads back to what it has caused
	})
	if err != nil {
		return s.cannot(ctx, fmt.Errorf("dispatch: instance %q: turn: %w", s.item.InstanceID, err))
	}
	if len(out.Events) == 0 {
		if !s.x.verified {
			return errUnverified
		}
		s.x.due = false
		if i := slices.IndexFunc(taken, isWake); i >= 0 { // the watch wakes what shows Pending, though its turn may have been long ago
			s.refresh(ctx, &taken[i].Message)
		}
		s.pass(ctx, len(taken))
		return nil
	}
	return s.commit(ctx, out)
}

// refresh has the instance's status written as history has it. Whether that succeeds is no concern of the messages: it is tried again.
func (s *session) refresh(ctx context.Context, wake *provider.Message) {
	if err := s.o.provider.RefreshStatus(ctx, wake); err != nil {
		s.o.options.Logger.WarnContext(ctx, "the status of an instance was not refreshed: it is behind until it is", "instance", s.item.InstanceID, "tries", wake.Refresh, "error", err)
	}
}

// isWake reports whether a message brings nothing but the turn that it causes.
func isWake(m provider.InboxMessage) bool { return m.Kind == provider.MessageWake && !m.IsRefresh() }

// settle counts as done what is consumed, unless outputs of it were refused and wait to be recorded, or what it began has had
// no turn.
func (s *session) settle() {
	if len(s.refused) == 0 && (s.x == nil || !s.x.due) {
		s.acked = len(s.item.Messages) - len(s.rest)
	}
}

// drop gives up what is left, up to what is not for this instance: its place was looked at, strongly consistent,
// in this invocation.
func (s *session) drop(ctx context.Context, why string) {
	n := slices.IndexFunc(s.rest, s.apart)
	if n < 0 {
		n = len(s.rest)
	}
	for i := range s.rest[:n] {
		s.o.options.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID, "kind", s.rest[i].Kind, "why", why)
	}
	s.rest, s.refused = s.rest[n:], nil
	s.settle()
}

// pass gives up messages that do not concern the orchestration any more.
func (s *session) pass(ctx context.Context, n int) {
	if n == len(s.rest) {
		s.drop(ctx, "nothing in it concerns the orchestration any more")
		return
	}
	s.rest, s.refused = s.rest[n:], nil
	s.settle()
}

// discard unwinds coroutines whose commit is not confirmed (R6).
func (s *session) discard() {
	if s.x != nil {
		s.x.close()
		s.x = nil
	}
}

// leave keeps the execution warm for its next turn; without code, where that is known to be of no use.
func (s *session) leave() {
	if s.x == nil || s.x.over {
		return
	}
	if _, hopeless := errors.AsType[*hopelessError](s.x.broken); s.x.instance == nil && !hopeless {
		return
	}
	s.x.verified, s.x.read = false, nil
	s.o.cache.put(s.item.InstanceID, s.x)
}
