package turns

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// turn is a turn in progress.
type turn struct {
	*instance

	// taken are the messages of the turn.
	taken []provider.InboxMessage
	// obstacle is the reason for which the code cannot process the messages. It is execution.ErrPaused if the instance
	// is paused, and nil if the code can run. unencoded is set if payloads of the messages could not be encoded.
	obstacle  error
	unencoded bool
	// noEffect is the reason for which the messages are dropped.
	noEffect string
	// out contains the decisions of the code. consumed is the number of messages that the turn consumes.
	out      replay.Outcome
	consumed int
	// buffer holds the events.
	buffer *buffer
	// ranAhead is set if the code has run before the previous turn was committed.
	ranAhead bool
	// ahead is the next turn, if the code has run it already.
	ahead *aheadTurn
	// successor is the execution that continues as new, or nil.
	successor *provider.Successor
	// commit is the turn in the form in which it is committed.
	commit provider.Turn
}

func (t *turn) begin(i *instance) { *t = turn{instance: i, taken: i.taken(), ahead: t.ahead} }

// block records that the code cannot process the messages, or must not because the instance is paused. An error that is
// neither a fault of the code nor execution.ErrPaused is returned.
func (t *turn) block(err error) (state, error) {
	if !errors.Is(err, execution.ErrPaused) && execution.Diagnose(err) == nil {
		return done, err
	}
	t.obstacle = err
	return parking, nil
}

// prepare processes the attempts of the messages (R14) and encodes their payloads (R28). It returns running if the code
// must process the remaining messages.
func (t *turn) prepare(ctx context.Context) (state, error) {
	x, instanceID := t.x, t.item.InstanceID
	about := x.PayloadInfo(instanceID)
	if err := t.o.payloads.Failures(ctx, about, t.taken); err != nil {
		return done, err
	}
	processed, err := t.o.attempts.Process(ctx, &t.attempts, x, instanceID, t.taken)
	t.queue.Refuse(processed.Refused...)
	switch {
	case err != nil:
		return done, err
	case processed.Unknown:
		return verifying, nil
	}
	if err := t.o.payloads.Messages(ctx, about, t.taken); err != nil {
		t.unencoded = true
		return t.block(err)
	}
	if x.Code.Broken() == nil {
		return running, nil
	}
	switch n := t.attempts.Done(t.taken); { // these messages have nothing to park
	case n == 0:
		return running, nil
	case !x.Verified():
		return verifying, nil
	default:
		t.queue.Consume(n)
		return acknowledging, nil
	}
}

// run runs the code over the messages, up to the message that ends the execution (R2).
func (t *turn) run() error {
	t.buffer = t.o.buffers.get()
	t.buffer.begin(messages.OutputFailures(t.queue.Refused()))
	for i := range t.taken {
		t.buffer.add(t.x, &t.taken[i], &t.attempts)
	}
	in := t.o.replayTurn(t.x, t.buffer)
	in.MostParked = t.maxParked
	// A turn without an input commits if it ends a block, or if a message or an inline activity refers to it.
	in.Commits = t.x.State().Blocked.Active || t.x.HasUncoveredOutputs() || t.inline.Any()
	out, err := t.x.Code.Turn(in)
	t.out = out
	return t.wrap(err)
}

// ranBefore reports whether the code has run the turn ahead, and if so, takes its decisions.
func (t *turn) ranBefore() (ran bool, err error) {
	a := t.takeAhead()
	if a == nil {
		return false, nil
	}
	t.out, t.buffer, t.ranAhead = a.out, a.buffer, true
	return true, t.wrap(a.err)
}

// drop records that the messages have no effect, for a reason.
func (t *turn) drop(why string) (state, error) {
	t.noEffect = why
	return dropping, nil
}

// wrap adds the instance to an error of the code.
func (t *turn) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dispatch: instance %q: turn: %w", t.item.InstanceID, err)
}

func (o *Orchestrator) replayTurn(x *execution.Execution, b *buffer) replay.Turn {
	return replay.Turn{
		Now: o.Clock().UTC(), Version: x.Code.Version, BuildID: o.loader.BuildID, Inputs: b.groups, Buffer: b.events,
	}
}
