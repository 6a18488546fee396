package replay

import (
	"cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// find reports whether an input applies. It returns the task of the input, or nil if the input is not about a task. The
// inputs of messages are from package messages (dispatch/internal/messages/inputs.go).
func (x *execution) find(ev *history.Event) (t *Task, applies bool) {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return nil, !x.mail.Knows(ev.EventID)
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return nil, x.isNewUpdate(ev)
	case history.UpdateAwaited:
		return nil, x.startsToWait(ev)
	case history.OrchestrationTerminated:
		return nil, true
	case history.CancelRequested:
		return nil, x.scopes.Root().Cancellation() == nil // the first reason is kept
	default:
		return x.tasks.Find(ev)
	}
}

// apply applies an input that find accepted.
func (x *execution) apply(t *Task, ev *history.Event) error {
	switch ev.Kind {
	case history.ExternalEventRaised:
		e := history.CarriedEvent{Name: ev.Name, EventID: ev.EventID, Data: ev.Data}
		return x.mailbox().Add(history.DataLocation{EventID: ev.ID}, e)
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return x.makeUpdates().Accept(ev)
	case history.UpdateAwaited:
		x.makeUpdates().Await(ev, x.isNewUpdateID(ev.EventID))
		return nil
	case history.OrchestrationTerminated:
		x.lifecycle.end()
		return nil
	case history.CancelRequested:
		return x.cancelInstance(ev)
	default:
		return x.tasks.Apply(t, ev)
	}
}

// cancelInstance cancels the scope of the body because a client requested it. If the body has not started, the
// execution ends and its code never runs, unless the same turn terminates the execution.
func (x *execution) cancelInstance(ev *history.Event) error {
	with := tasks.NewCancellation(cmp.Or(ev.Reason, tasks.ReasonRequested), ev.Message)
	if x.lifecycle.hasStarted() {
		return x.scopes.CancelRoot(with)
	}

	x.scopes.EndRoot(with)
	if x.lifecycle.terminating {
		return nil
	}
	return x.recordEnd(Ending{Kind: history.OrchestrationCancelled})
}

// applyArrived applies the first n outcomes that have arrived, and runs the code after each.
func (x *execution) applyArrived(n int) error {
	for range n {
		if x.lifecycle.hasEnded() || x.scheduler.IsVoid() {
			return nil
		}
		ev := x.tasks.Arrivals.Next()
		if t, applies := x.find(ev); applies {
			if err := x.apply(t, ev); err != nil {
				return err
			}
			x.scheduler.Run(&x.lifecycle.ended)
		}
	}
	return nil
}

// isTerminated reports whether the events of a turn terminate the execution. If the first turn does so, the code never
// runs.
func isTerminated(events []history.Event) bool {
	for i := range events {
		switch {
		case events[i].Kind == history.OrchestrationTerminated:
			return true
		case i > 0 && startsSegment(events[i].Kind):
			return false // another turn, or a request for a blocked or paused instance
		}
	}
	return false
}

// startsSegment reports whether an event does not belong to the turn before it.
func startsSegment(k history.Kind) bool {
	return k == history.TurnStarted || k == history.InputsParked || k == history.ExecutionSuspended ||
		k == history.ExecutionRestarted
}
