package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// end decides the end that the body came to.
func (x *execution) end(e Ending) {
	x.scheduler.Enter()
	if err := x.conclude(e); err != nil {
		x.scheduler.Fail(err)
	}
}

// conclude decides the end of the execution, and before it the cancels of what is outstanding.
func (x *execution) conclude(e Ending) error {
	from := x.journal.Cursor.Position()
	if err := x.cancelAll(e.Kind); err != nil {
		if x.journal.Cursor.Position() == from && !x.journal.Cursor.EndsHere(e.Kind) { // history has not come to the end at all
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
		if e.Kind != history.OrchestrationContinuedAsNew { // else the next execution has what waits
			ev.Callers = unansweredCallers(x)
		}
		if e.Kind == history.OrchestrationCancelled {
			ev.Message = x.scopes.Root().Cancellation().Message
		}
	}

	if e.Kind == history.OrchestrationContinuedAsNew {
		x.continued = continuation(x, e)
	}
	x.life.end()
	return nil
}

// cancelAll records, before the end of the execution, what is outstanding: it cancels tasks and aborts update handlers.
func (x *execution) cancelAll(end history.Kind) error {
	x.mail.EndWaits(end)
	if err := x.scopes.CancelAll(end); err != nil {
		return err
	}
	return x.updates.Abort(end)
}

// continuation is what an execution hands on that continues as new.
func continuation(x *execution, e Ending) *Continuation {
	queued := x.updates.QueuedIDs()
	c := &Continuation{
		Input:    inline(e.Input),
		Events:   x.mail.Carry(),
		EventIDs: x.mail.CarryIDs(queued),
		Inputs:   x.updates.Carry(),
		taken:    func(id string) bool { return x.mail.Knows(id) && !slices.Contains(queued, id) },
	}
	for _, in := range x.parking.inherited() {
		c.HandOn(in)
	}
	return c
}

// replayRelease decides again what came before an order to terminate.
func (x *execution) replayRelease() error {
	if err := x.cancelAll(history.OrchestrationTerminated); err != nil {
		return err
	}
	if next := x.journal.Cursor.Next(); next == nil || next.Kind != history.OrchestrationTerminated {
		return x.journal.Cursor.Divergence(string(history.OrchestrationTerminated))
	}
	return nil
}
