package turns

import (
	"context"

	"github.com/perdure/perdure/internal/replay"
)

// Where a turn has nothing to wait for but the outcomes of its inline activities, the code goes on with them before they are committed (R20). Nothing
// follows from what it decides then, any more than from what it decides in any turn. If it begins no inline activity, both turns are one commit: a
// chain that ends, or goes on in a queue, saves a write. Else the outcomes are committed first, as they must be before anything else runs, and what the
// code has decided ahead is the next turn.

// ahead is a turn that the code has run before the one before it is committed.
type ahead struct {
	room *room
	out  replay.Outcome
	// err is why the code could not: then the one before is committed alone.
	err error
}

// goAhead has the code go on with the outcomes behind the first decided events of a turn that is about to be committed, if nothing else is to come.
func (t *turn) goAhead(ctx context.Context, decided int) {
	s := t.s
	if !t.waitsForOutcomes(decided) || ctx.Err() != nil || s.asked.is || chainIsLong(s, 1) {
		return
	}
	a := &ahead{room: s.o.rooms.take()}
	a.room.begin(nil) // t has what was refused
	s.x.instance.Arrive(t.out.Events[decided:])
	a.out, a.err = s.x.instance.Turn(turnOf(s, a.room))
	s.ahead = a
}

// waitsForOutcomes reports whether outcomes have arrived behind the first decided events, and nothing else can come in this invocation.
func (t *turn) waitsForOutcomes(decided int) bool {
	s := t.s
	arrived := len(t.out.Events) - decided
	return arrived > 0 && arrived == len(s.steps.all) && decided <= heldEvents && !t.out.Ended &&
		t.consumed == len(s.backlog.waiting()) && s.x.state.Parked == 0 && s.mostParked == 0 && !s.x.state.Blocked.Active
}

// join adds a turn that the code has run ahead to the one before it, to be committed with it. It reports whether it has: not where the code has begun
// inline activities in it, or continues as new.
func (t *turn) join(ctx context.Context) bool {
	s, a := t.s, t.s.ahead
	if a == nil || a.err != nil || a.out.Continued != nil {
		return false
	}
	trace(ctx, a.out.Events)
	if len(inlineOf(s, a.out.Events)) > 0 {
		return false
	}
	if a.err = t.seal(ctx, a.out.Events, nil); a.err != nil {
		return false
	}
	t.out.Events = append(t.out.Events, a.out.Events...)
	return true
}

// takeAhead takes the turn that the code has run ahead; nil where it has not.
func takeAhead(s *session) *ahead {
	a := s.ahead
	s.ahead = nil
	return a
}

// chainIsLong reports whether, with some turns more, the session has gone from step to step for so long that another invocation is to go on.
func chainIsLong(s *session, more int32) bool {
	return s.chained+more >= chainTurns || s.o.options.Clock().Sub(s.began) >= chainTime
}
