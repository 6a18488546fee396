package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// turn runs the body over what is left, up to the message that ends the execution (R2), and commits what it decided.
func (s *session) turn(ctx context.Context) (next, error) {
	if s.x.broken != nil {
		return s.blockOrFail(ctx, s.x.broken)
	}
	s.x.fetch = s.o.fetch(ctx, s.item.InstanceID)
	s.x.seals.Within(ctx)
	if a := takeAhead(s); a != nil {
		if a.err != nil {
			return s.blockOrFail(ctx, fmt.Errorf("dispatch: instance %q: turn: %w", s.item.InstanceID, a.err))
		}
		t := turn{s: s, out: &a.out, room: a.room, ahead: true}
		return t.settle(ctx)
	}

	taken := s.taken()
	room := s.o.rooms.take()
	room.begin(failures(s.backlog.refused))
	for i := range taken {
		room.add(s.x, &taken[i], &s.attempts)
	}

	of := turnOf(s, room)
	of.MostParked = s.mostParked
	of.Commits = s.x.state.Blocked.Active || s.x.trail.alone || s.x.state.RestartPending() || s.steps.any() // its status goes on, or something leads back to what it has caused, or comes
	out, err := s.x.instance.Turn(of)
	if err == nil {
		if next, err := answerAgain(ctx, s, &out); next != goOn || err != nil {
			return next, err
		}
	}
	switch {
	case err != nil:
		return s.blockOrFail(ctx, fmt.Errorf("dispatch: instance %q: turn: %w", s.item.InstanceID, err))
	case len(out.Events) == 0:
		return s.passOver(ctx, taken)
	default:
		t := turn{s: s, out: &out, room: room}
		return t.settle(ctx)
	}
}

// turnOf is a turn of the session's code that takes what lies in a room.
func turnOf(s *session, r *room) replay.Turn {
	return replay.Turn{Now: s.o.options.Clock().UTC(), Version: s.x.version, BuildID: s.o.options.BuildID, Inputs: r.groups, Room: r.events}
}

// passOver gives up messages that do not concern the orchestration any more.
func (s *session) passOver(ctx context.Context, taken []provider.InboxMessage) (next, error) {
	if !s.x.verified {
		return verify, nil
	}
	s.x.idle()
	refreshWoken(ctx, s, taken)
	s.drop(ctx, "message has no effect")
	return goOn, nil
}

// refreshWoken writes the status of an instance that a wake has brought nothing: the watch wakes what shows Pending, though its turn may have been
// long ago.
func refreshWoken(ctx context.Context, s *session, taken []provider.InboxMessage) {
	if i := slices.IndexFunc(taken, isWake); i >= 0 {
		s.o.refresh(ctx, &taken[i].Message)
	}
}

// isWake reports whether a message brings nothing but the turn that it causes.
func isWake(m provider.InboxMessage) bool { return m.Kind == provider.MessageWake && !m.IsRefresh() }

// turn is what the code has decided, on its way into history.
type turn struct {
	s *session
	// out is what the code has decided, consumed how many messages led to that.
	out      *replay.Outcome
	consumed int
	// room is where its events lie.
	room *room
	// ahead: the code has run it before the turn before it was committed.
	ahead bool
}

// settle runs what the turn has begun inline, and commits it.
func (t *turn) settle(ctx context.Context) (next, error) {
	trace(ctx, t.out.Events)
	if next, err := runSteps(ctx, t.s, t.out.Events); next != goOn || err != nil {
		return next, err
	}
	next, err := t.commit(ctx)
	if err == nil {
		t.s.o.rooms.giveBack(t.room, t.out.Events)
	}
	return next, err
}

// commit makes the turn durable and sends what it decided. Only then are its messages done.
func (t *turn) commit(ctx context.Context) (next, error) {
	s := t.s
	t.consumed = t.messages()
	var next *provider.Successor
	if t.out.Continued != nil {
		next = t.successor()
	}
	if err := t.seal(ctx, t.out.Events, next); err != nil {
		return s.blockOrFail(ctx, fmt.Errorf("dispatch: instance %q: turn: %w", s.item.InstanceID, err))
	}
	commit, refused, err := t.ack(ctx, next)
	if errors.Is(err, provider.ErrTooLarge) {
		if next := t.shrink(); next != goOn {
			return next, nil
		}
		if t.out.Continued != nil && s.x.state.Parked > 0 {
			return s.blockOrFail(ctx, &handoverError{err})
		}
		commit = t.endTooLarge(commit, err)
		refused, err = s.o.provider.AckOrchestrationItem(ctx, commit)
	}
	if err != nil {
		return goOn, unsent(ctx, s, err, commit, t.out.Waits...)
	}

	if t.ahead {
		refused = append(s.backlog.refused, refused...) // the code has not seen what was refused since it ran
	}
	leaving := s.committed(ctx, commit, refused, t.consumed, t.out.Waits...)
	if err := sendSteps(ctx, s, leaving); err != nil {
		return goOn, err
	}
	if commit.Next != nil {
		return s.beginSuccessor(ctx, commit)
	}
	s.consume(0)
	return goOn, chainOn(ctx, s)
}

// ack commits what the turn has decided, the outcomes of inline activities that have come, and what the code has decided ahead: as much of it as fits.
func (t *turn) ack(ctx context.Context, next *provider.Successor) (commit *provider.Turn, refused []provider.OutputFailure, err error) {
	s, decided := t.s, len(t.out.Events)
	t.out.Events = s.steps.arriving(t.out.Events, s.o.options.Clock())
	arrived := len(t.out.Events)
	t.goAhead(ctx, decided)

	ends := make([]int, 0, 3) //nolint:mnd // with all of it, without what is ahead, without what has arrived
	if t.join(ctx) {
		ends = append(ends, len(t.out.Events))
	}
	ends = append(ends, arrived)
	if arrived > decided && s.ahead == nil { // else the code has seen what would be left to a later commit
		ends = append(ends, decided)
	}
	for _, end := range ends {
		t.out.Events = t.out.Events[:end]
		commit = t.with(decided, next)
		refused, err = s.o.provider.AckOrchestrationItem(ctx, commit)
		if !errors.Is(err, provider.ErrTooLarge) {
			break
		}
	}
	if (err == nil || errors.Is(err, provider.ErrDispatchIncomplete)) && len(t.out.Events) > arrived {
		a := takeAhead(s)
		t.out.Waits = append(t.out.Waits, a.out.Waits...)
		s.o.rooms.giveBack(a.room, a.out.Events)
	}
	return commit, refused, err
}

// with is the turn with what it has decided, and the outcomes of inline activities behind that, and the execution that it continues as.
func (t *turn) with(decided int, next *provider.Successor) *provider.Turn {
	s, events := t.s, t.out.Events
	if len(events) > heldEvents {
		s.steps.unkept(events[decided:])
	}
	running := s.steps.leaving(events[:decided])
	commit := &s.commit
	*commit = s.x.newTurn(s.item.InstanceID, events)
	commit.LockedUntil, commit.Next, commit.Running = s.item.LockedUntil(), next, running
	commit.StatusWrite = t.shows()
	if t.consumed > 0 {
		commit.Watermark = s.backlog.waiting()[t.consumed-1].Position
	}
	return commit
}

// messages is how many messages the turn consumes.
func (t *turn) messages() int {
	s, waiting := t.s, t.s.backlog.waiting()
	consumed := max(t.out.Consumed-1, 0) // the first group was the refused outputs
	if t.out.Ended && t.out.Consumed == 0 && len(waiting) > 0 && (t.out.Continued == nil || !s.x.isLedBy(s.backlog.inHand())) {
		consumed = 1 // a body that ended before any message was started by the first: it must be known as the trigger (R4)
		t.handOn(&waiting[0])
	}
	for consumed < len(waiting) && isWake(waiting[consumed]) {
		consumed++ // it brought what it could: a turn
	}
	return consumed
}

// shrink deals with a turn that no commit can hold. Outcomes that came together, each of a legal size, may fit when fewer are
// taken (R2): first of what was parked, and then of messages. What is too large by itself goes on to an end with the reason.
func (t *turn) shrink() next {
	s := t.s
	s.inline = inlineLimits{} // the turn is made again, and what has run inline does not run again here
	if s.ahead != nil {
		return takeFewer
	}
	switch waiting := s.x.state.UnconsumedInputs(); {
	case waiting > 0 && s.mostParked == 0:
		s.mostParked = max(waiting/2, 1)
	case min(waiting, s.mostParked) > 1:
		s.mostParked = min(waiting, s.mostParked) / 2
	case s.backlog.takeFewer(t.consumed):
	case s.x.read == nil:
		return verify // what is outstanding stands in history alone
	default:
		return goOn
	}
	return takeFewer
}

// endTooLarge is the turn that takes the place of one which is too large by itself: an end with the reason.
func (t *turn) endTooLarge(tooLarge *provider.Turn, why error) *provider.Turn {
	s := t.s
	t.out.Waits = nil // it is not the code that ends them
	watermark := tooLarge.Watermark
	if first := s.backlog.first(); t.consumed == 0 && first != nil {
		t.consumed, watermark = 1, first.Position // what leads to an end has to lead back to it (R4)
	}
	end := history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{Type: history.TypePayloadTooLarge, Message: why.Error(), NonRetryable: true}}
	leaveUntaken(&end, s.backlog.waiting()[:t.consumed]...)
	events := append([]history.Event{tooLarge.Events[0]}, s.x.withCancellations(end)...)

	commit := s.x.newTurn(s.item.InstanceID, s.x.numbered(s.o.options.Clock(), events...))
	commit.LockedUntil, commit.Watermark = tooLarge.LockedUntil, watermark
	return &commit
}

// committed moves on: t is history, and its messages are consumed. It returns the steps that nobody has sent to their queues.
// waits are the waits for external events that have ended in it.
func (s *session) committed(ctx context.Context, t *provider.Turn, refused []provider.OutputFailure, consumed int, waits ...replay.WaitEnd) (unsent []*step) {
	s.unshown = t.StatusWrite == provider.StatusWriteDeferred && (s.unshown || t.Changes())
	noteCommitted(ctx, s, t, consumed > 0, waits)
	s.sent.upTo(s.x.head)

	if t.Events[0].ParkedConsumed == 0 { // else the turn took parked inputs alone
		s.backlog.recorded()
	}
	s.backlog.refuse(refused...)
	s.backlog.consume(consumed)
	if s.x.over() || t.Next != nil {
		s.backlog.recorded()
		s.steps.drop()
		s.x.close()
		return nil
	}
	if s.x.state.InlineOutcomes > 0 && s.x.instance != nil && s.ahead == nil {
		s.x.instance.Arrive(arrivedIn(t.Events))
	}
	return s.steps.committed(t)
}

// noteCommitted applies a turn that is history to the view, and notes it for the log, for interceptors and for metrics: nobody else does.
func noteCommitted(ctx context.Context, s *session, t *provider.Turn, consumed bool, waits []replay.WaitEnd) {
	logCancels(ctx, s.o.options.Logger, t)
	s.x.committed(t, consumed)
	noteResult(s, t)
	noteTasks(s, t, waits)
	measure(s, t)
}

// unsent returns the error of a commit. Where the turn is history all the same, and only not all is sent, whoever sends it knows nothing of it: it is noted here.
// The view is given up with the error.
func unsent(ctx context.Context, s *session, err error, t *provider.Turn, waits ...replay.WaitEnd) error {
	if errors.Is(err, provider.ErrDispatchIncomplete) {
		noteCommitted(ctx, s, t, true, waits)
	}
	return err
}

// arrivedIn are the outcomes that the code has not seen, behind the decisions of a turn.
func arrivedIn(events []history.Event) []history.Event {
	n := len(events)
	for n > 0 && events[n-1].IsInlineOutcome() {
		n--
	}
	return events[n:]
}
