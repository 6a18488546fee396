package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// Continuation is the state that an execution passes to the next execution of its instance (R3).
type Continuation struct {
	Input history.Payload
	// Events contains the external events that the code has not observed, in the order of arrival.
	Events []history.CarriedEvent
	// EventIDs contains the IDs of the last 256 external events that the execution received, oldest first. Before them
	// are the IDs of older events, if Inputs still has those events.
	EventIDs []string
	// Inputs contains inputs that were parked behind the one on which the code continued as new, updates that arrived
	// before the code began, and inputs of PassOn. No message delivers them again.
	Inputs []history.Event
	// taken reports whether this execution has taken an input with this ID that is not in Inputs.
	taken func(id string) bool
}

// PassOn adds an input. If this execution has taken an input with the same ID before, PassOn records the ID, so that
// the next execution drops the input.
func (c *Continuation) PassOn(in history.Event) {
	c.Inputs = append(c.Inputs, in)
	id := in.EventID
	if in.Kind == history.UpdateAccepted || in.Kind == history.UpdateAwaited {
		id = history.UpdateIDPrefix + id
	}
	if c.taken(id) && !slices.Contains(c.EventIDs, id) {
		c.EventIDs = slices.Insert(c.EventIDs, 0, id)
	}
}

// end records the end of the body.
func (x *execution) end(e Ending) {
	x.scheduler.Enter()
	if err := x.recordEnd(e); err != nil {
		x.scheduler.Fail(err)
	}
}

// recordEnd records the end of the execution, after the cancellations of outstanding tasks.
func (x *execution) recordEnd(e Ending) error {
	from := x.journal.Cursor.Position()
	if err := x.cancelAll(e.Kind); err != nil {
		if x.journal.Cursor.Position() == from && !x.journal.Cursor.EndsHere(e.Kind) { // the history has no end here
			return x.journal.Cursor.Divergence(string(e.Kind))
		}
		return err
	}

	d := journal.Decision{Kind: e.Kind}
	if e.Kind == history.OrchestrationCancelled {
		d.Reason = x.scopes.Root().Cancellation().Reason
	}
	ev, added, err := x.journal.Decide(&d)
	if err != nil {
		return err
	}
	if added {
		ev.Output = inline(e.Output)
		ev.Error = e.Error
		if e.Kind != history.OrchestrationContinuedAsNew { // the next execution receives them
			ev.Callers = x.waitingCallers()
		}
		if e.Kind == history.OrchestrationCancelled {
			ev.Message = x.scopes.Root().Cancellation().Message
		}
	}

	if e.Kind == history.OrchestrationContinuedAsNew {
		x.continued = x.continuation(e)
	}
	x.lifecycle.end()
	return nil
}

// cancelAll cancels open tasks and aborts update handlers before the end of the execution, and records both.
func (x *execution) cancelAll(end history.Kind) error {
	x.mail.EndWaits(end)
	if err := x.scopes.CancelAll(end); err != nil {
		return err
	}
	return x.updates.Abort(end)
}

// continuation returns the state for the next execution.
func (x *execution) continuation(e Ending) *Continuation {
	queued := x.updates.QueuedIDs()
	c := &Continuation{
		Input:    inline(e.Input),
		Events:   x.mail.Carry(),
		EventIDs: x.mail.CarryIDs(queued),
		Inputs:   x.updates.Carry(),
		taken:    func(id string) bool { return x.mail.Knows(id) && !slices.Contains(queued, id) },
	}
	for _, in := range x.parked.inherited() {
		c.PassOn(in)
	}
	return c
}
