package replay

import (
	"cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// concerns reports whether an input applies, and to which task, where it is about one.
func (x *execution) concerns(ev *history.Event) (*Task, bool) {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return nil, !x.mail.Knows(ev.EventID)
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return nil, isNewUpdate(x, ev)
	case history.UpdateAwaited:
		return nil, awaitsAnew(x, ev)
	case history.OrchestrationTerminated:
		return nil, true
	case history.CancelRequested:
		return nil, x.scopes.Root().Cancellation() == nil // the first reason stays
	default:
		return x.tasks.Find(ev)
	}
}

// accept takes an input that applies; t is the task that it is about.
func (x *execution) accept(t *Task, ev *history.Event) error {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return x.mailbox().Add(history.DataLocation{EventID: ev.ID}, history.CarriedEvent{Name: ev.Name, EventID: ev.EventID, Data: ev.Data})
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return x.makeUpdates().Accept(ev)
	case history.UpdateAwaited:
		x.makeUpdates().Await(ev, isNewUpdateID(x, ev.EventID))
		return nil
	case history.OrchestrationTerminated:
		x.life.end()
		return nil
	case history.CancelRequested:
		return x.cancelInstance(ev)
	default:
		return x.tasks.Apply(t, ev)
	}
}

// cancelInstance cancels the scope of the body, as a client requested. An orchestration that has not begun has nothing to unwind: it ends, and
// its code never runs. One that the same turn terminates ends by that.
func (x *execution) cancelInstance(ev *history.Event) error {
	with := tasks.NewCancellation(cmp.Or(ev.Reason, tasks.ReasonRequested), ev.Message)
	if x.life.hasBegun() {
		return x.scopes.CancelRoot(with)
	}

	x.scopes.EndRoot(with)
	if x.life.doomed {
		return nil
	}
	return x.conclude(Ending{Kind: history.OrchestrationCancelled})
}

// terminated reports whether the events of a turn end the execution from outside. The code of an execution that ends so in its
// first turn never runs.
func terminated(events []history.Event) bool {
	for i := range events {
		switch {
		case events[i].Kind == history.OrchestrationTerminated:
			return true
		case i > 0 && endsTurn(events[i].Kind):
			return false // another turn, or the request of a client on an instance that was blocked or paused
		}
	}
	return false
}

// endsTurn reports whether an event of history belongs to no turn before it.
func endsTurn(k history.Kind) bool {
	return k == history.TurnStarted || k == history.InputsParked || k == history.ExecutionSuspended || k == history.ExecutionRestarted
}
