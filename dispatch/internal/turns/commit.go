package turns

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// complete counts the consumed messages, names the next execution if the code continues as new, and encodes the events.
func (t *turn) complete(ctx context.Context) error {
	t.consumed = t.countConsumed()
	if t.out.Continued != nil {
		t.successor = t.newSuccessor()
	}
	return t.o.payloads.Turn(ctx, t.x, t.item.InstanceID, t.out.Events, t.successor)
}

func (t *turn) countConsumed() int {
	waiting := t.queue.Waiting()
	consumed := max(t.out.Consumed-1, 0) // the first group was the refused outputs
	if t.out.Ended && t.out.Consumed == 0 && len(waiting) > 0 && (t.out.Continued == nil || !t.hasTrigger()) {
		consumed = 1 // the code has ended before it consumed a message: the first one must be known as the trigger (R4)
		t.carryOver(&waiting[0])
	}
	for consumed < len(waiting) && messages.IsWake(waiting[consumed]) {
		consumed++ // the only effect of a wake is the turn
	}
	return consumed
}

// write commits the turn. If they fit, the commit includes the outcomes of inline activities that have arrived and the
// turn ahead, which is the next turn if the code has run it before this commit (ahead.go). The provider creates the
// segment and finds conflicts (provider/dynamo/internal/segments/commit.go).
func (t *turn) write(ctx context.Context) (refused []provider.OutputFailure, err error) {
	decided := len(t.out.Events)
	t.out.Events = t.inline.AppendOutcomes(t.out.Events)
	arrived := len(t.out.Events)
	t.runAhead(ctx, decided)

	ends := make([]int, 0, 3) //nolint:mnd // with all, without the turn ahead, without the outcomes
	if t.join(ctx) {
		ends = append(ends, len(t.out.Events))
	}
	ends = append(ends, arrived)
	if arrived > decided && t.ahead == nil { // otherwise the code has seen the outcomes
		ends = append(ends, decided)
	}
	for _, end := range ends {
		t.out.Events = t.out.Events[:end]
		t.build(decided)
		refused, err = t.o.Provider.AckOrchestrationItem(ctx, &t.commit)
		if !errors.Is(err, provider.ErrTooLarge) {
			break
		}
	}
	if (err == nil || errors.Is(err, provider.ErrDispatchIncomplete)) && len(t.out.Events) > arrived {
		a := t.takeAhead()
		t.out.Waits = append(t.out.Waits, a.out.Waits...)
		t.o.buffers.put(a.buffer, a.out.Events)
	}
	return refused, err
}

// build builds the commit of the events. The first decided ones are the decisions of the turn.
func (t *turn) build(decided int) {
	events := t.out.Events
	running := t.inline.BeforeCommit(events, decided)
	t.commit = t.x.NewTurn(t.item.InstanceID, events)
	t.commit.LockedUntil, t.commit.Next, t.commit.Running = t.item.LockedUntil(), t.successor, running
	t.commit.StatusWrite = t.statusWrite()
	if t.consumed > 0 {
		t.commit.Watermark = t.queue.Waiting()[t.consumed-1].Position
	}
}

// maxStatusDelay is the time after the start of an invocation for which a status update may be deferred to a later
// turn.
const maxStatusDelay = time.Second

// statusWrite returns how the commit writes the status. If an instance ends within its first invocation, the status
// Running would hardly be visible. A turn that the same invocation continues therefore defers the status to a later
// turn for a short time. If the process crashes before that turn, the redispatch writes the status (R9).
func (t *turn) statusWrite() provider.StatusWrite {
	last := &t.out.Events[len(t.out.Events)-1]
	switch {
	case last.IsInlineOutcome() && t.chain.age() < maxStatusDelay && !t.inline.Interrupted() &&
		!t.chain.isLong(1): // the next turn is due in this invocation
		return provider.StatusWriteDeferred
	case t.statusPending:
		return provider.StatusWriteAlways
	default:
		return provider.StatusWriteIfChanged
	}
}

// halve limits the next turn to half of the inputs, because this turn is too large for a commit. It halves the parked
// inputs first, then the messages. Inputs that arrived together may fit into several turns (R2). Before that, it only
// drops the turn that ran ahead. It returns false if the turn cannot be smaller.
func (t *turn) halve() bool {
	t.inline.Disable() // activities that have run inline do not run again in this session
	if t.ahead != nil {
		return true
	}
	switch parked := t.x.State().UnconsumedInputs(); {
	case parked > 0 && t.maxParked == 0:
		t.maxParked = max(parked/2, 1)
	case min(parked, t.maxParked) > 1:
		t.maxParked = min(parked, t.maxParked) / 2
	default:
		return t.queue.Halve(t.consumed)
	}
	return true
}

// writeEnd replaces a turn that is too large by an end with the reason, and commits the end.
func (t *turn) writeEnd(ctx context.Context, why error) ([]provider.OutputFailure, error) {
	t.out.Waits = nil // the code does not end them
	watermark := t.commit.Watermark
	if first := t.queue.First(); t.consumed == 0 && first != nil {
		t.consumed, watermark = 1, first.Position // the trigger of an end must be known as consumed (R4)
	}
	end := history.Event{
		Kind:  history.OrchestrationFailed,
		Error: &history.Failure{Type: history.TypePayloadTooLarge, Message: why.Error(), NonRetryable: true},
	}
	messages.RecordUnprocessed(&end, t.queue.Waiting()[:t.consumed]...)
	events := append([]history.Event{t.commit.Events[0]}, t.x.EventsToEnd(end)...)

	locked := t.commit.LockedUntil
	t.commit = t.x.NewTurn(t.item.InstanceID, t.x.Number(t.o.Clock(), events...))
	t.commit.LockedUntil, t.commit.Watermark = locked, watermark
	return t.o.Provider.AckOrchestrationItem(ctx, &t.commit)
}

// outcomesAtEnd returns the outcomes behind the decisions of a turn, which the code has not seen.
func outcomesAtEnd(events []history.Event) []history.Event {
	n := len(events)
	for n > 0 && events[n-1].IsInlineOutcome() {
		n--
	}
	return events[n:]
}
