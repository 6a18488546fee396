package turns

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/inline"
	"github.com/perdure/perdure/dispatch/internal/observe"
	"github.com/perdure/perdure/internal/replay"
)

// If a turn waits only for the outcomes of its inline activities, the code continues with them before they are
// committed (R20). As in any turn, its decisions have no effect before their commit. If the next turn starts no inline
// activity, one commit contains both turns, which saves a write. Otherwise, the outcomes are committed before other
// code runs, and the decisions are the next turn.

const (
	// maxChainTurns and maxChainTime limit a chain, because messages to the instance wait.
	maxChainTurns = 1000
	maxChainTime  = 10 * time.Second
)

// chain is the chain of turns in a session that were due because inline activities had ended.
type chain struct {
	clock func() time.Time
	began time.Time
	turns int32
}

func newChain(clock func() time.Time) chain { return chain{clock: clock, began: clock()} }

func (c *chain) age() time.Duration { return c.clock().Sub(c.began) }

// isLong reports whether another invocation should continue the instance after more turns.
func (c *chain) isLong(more int32) bool {
	return c.turns+more >= maxChainTurns || c.age() >= maxChainTime
}

// aheadTurn is a turn that the code has run before the commit of the previous turn.
type aheadTurn struct {
	buffer *buffer
	out    replay.Outcome
	// err is an error of the code or of the encoding. The previous turn is then committed alone.
	err error
}

// runAhead runs the code with the outcomes behind the first decided events of a turn, before the turn is committed. It
// does so only if no other input can arrive.
func (t *turn) runAhead(ctx context.Context, decided int) {
	if !t.waitsForOutcomes(decided) || ctx.Err() != nil || t.inline.Interrupted() || t.chain.isLong(1) {
		return
	}
	a := &aheadTurn{buffer: t.o.buffers.get()}
	a.buffer.begin(nil) // this turn has the refused outputs
	t.x.Code.Arrive(t.out.Events[decided:])
	a.out, a.err = t.x.Code.Turn(t.o.replayTurn(t.x, a.buffer))
	t.ahead = a
}

func (t *turn) takeAhead() *aheadTurn {
	a := t.ahead
	t.ahead = nil
	return a
}

// waitsForOutcomes reports whether outcomes have arrived behind the first decided events, and no other input can arrive
// in this invocation.
func (t *turn) waitsForOutcomes(decided int) bool {
	arrived, state := len(t.out.Events)-decided, t.x.State()
	return arrived > 0 && arrived == t.inline.Count() && decided <= inline.MaxHeldEvents && !t.out.Ended &&
		t.consumed == len(t.queue.Waiting()) && state.Parked == 0 && t.maxParked == 0 && !state.Blocked.Active
}

// join adds the turn that the code has run ahead to this one. It returns false if the code has started inline
// activities in the added turn, or continues as new.
func (t *turn) join(ctx context.Context) bool {
	a := t.ahead
	if a == nil || a.err != nil || a.out.Continued != nil {
		return false
	}
	observe.RecordTrace(ctx, a.out.Events)
	if t.inline.Schedules(a.out.Events) {
		return false
	}
	if a.err = t.o.payloads.Turn(ctx, t.x, t.item.InstanceID, a.out.Events, nil); a.err != nil {
		return false
	}
	t.out.Events = append(t.out.Events, a.out.Events...)
	return true
}

// leaveChain passes a chain of turns with inline activities to another invocation by a wake, if the chain is too long.
// Messages to the instance wait for the end of the chain.
func (t *turn) leaveChain(ctx context.Context) error {
	if t.x.State().InlineOutcomes == 0 || !t.x.Due() || t.inline.Any() {
		return nil
	}
	t.chain.turns++
	switch {
	case t.ahead != nil, t.statusPending: // only this invocation can continue
		return nil
	case !t.inline.Interrupted() && !t.chain.isLong(0):
		return nil
	}
	return t.passOn(ctx)
}
