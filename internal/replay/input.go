package replay

import "github.com/perdure/perdure/history"

// concerns reports whether an input has anything to say, and to which task, where it is about one.
func (x *execution) concerns(ev *history.Event) (*Task, bool) {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return nil, !x.mail.knows(ev.EventID)
	case history.OrchestrationTerminated:
		return nil, true
	case history.CancelRequested:
		return nil, x.root.cancelled == nil // the first reason stays
	case history.ActivityCancelRequested:
		t := x.tasks[ev.SourceEventID]
		return t, t.isOpenActivity() && ev.IsInput()
	case history.ActivityRetryScheduled:
		t := x.tasks[ev.SourceEventID]
		return t, t.isOpenActivity() && ev.Attempt > int(t.attempt)
	default:
		t := x.tasks[ev.SourceEventID]
		return t, t != nil && t.settledBy(ev.Kind)
	}
}

// isOpenActivity reports whether a task, if there is one, is an activity that has neither settled nor been cancelled.
func (t *Task) isOpenActivity() bool {
	return t != nil && t.kind == history.ActivityScheduled && !t.done && !t.cancelled
}

// accept takes an input into account that concerns the execution; t is the task that it is about.
func (x *execution) accept(t *Task, ev *history.Event) error {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return x.raise(history.Place{EventID: ev.ID}, history.CarriedEvent{Name: ev.Name, EventID: ev.EventID, Data: ev.Data})
	case history.OrchestrationTerminated:
		x.ended = true
		return nil
	case history.CancelRequested:
		return x.cancelInstance(ev)
	case history.ActivityCancelRequested:
		x.cancelTask(t, ev)
		return nil
	case history.ActivityRetryScheduled:
		t.attempt = int32(ev.Attempt)
		return nil
	default:
		return x.record(t, ev)
	}
}

// terminated reports whether the events of a turn end the execution from outside. The code of an execution that ends so in its
// first turn never runs.
func terminated(events []history.Event) bool {
	for i := range events {
		switch {
		case events[i].Kind == history.OrchestrationTerminated:
			return true
		case i > 0 && (events[i].Kind == history.TurnStarted || events[i].Kind == history.InputsParked):
			return false // another turn, or the order of a client of an instance that was blocked
		}
	}
	return false
}
