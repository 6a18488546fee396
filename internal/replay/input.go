package replay

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// concerns reports whether an input applies, and to which task, where it is about one.
func (x *execution) concerns(ev *history.Event) (*Task, bool) {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return nil, !x.tasks.mail.knows(ev.EventID)
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return nil, isNewUpdate(x, ev)
	case history.UpdateAwaited:
		return nil, isAwaitedAnew(x, ev)
	case history.OrchestrationTerminated:
		return nil, true
	case history.CancelRequested:
		return nil, x.scopes.root.cancelled == nil // the first reason stays
	case history.ActivityCancelRequested:
		t := x.tasks.open[ev.SourceEventID]
		return t, t.isOpenActivity() && ev.IsInput()
	case history.ActivityRetryScheduled:
		t := x.tasks.open[ev.SourceEventID]
		return t, t.isOpenActivity() && ev.Attempt > int(t.attempt)
	default:
		t := x.tasks.open[ev.SourceEventID]
		return t, t != nil && t.settledBy(ev.Kind)
	}
}

// isOpenActivity reports whether a task, if there is one, is an activity that has neither settled nor been cancelled.
func (t *Task) isOpenActivity() bool {
	return t != nil && t.kind == history.ActivityScheduled && !t.done && !t.cancelled
}

// accept takes an input that applies; t is the task that it is about.
func (x *execution) accept(t *Task, ev *history.Event) error {
	switch ev.Kind {
	case history.ExternalEventRaised:
		return x.tasks.events().raise(history.DataLocation{EventID: ev.ID}, history.CarriedEvent{Name: ev.Name, EventID: ev.EventID, Data: ev.Data})
	case history.UpdateReceived, history.UpdateAccepted, history.UpdateRejected:
		return acceptUpdate(x, ev)
	case history.UpdateAwaited:
		await(x, ev)
		return nil
	case history.OrchestrationTerminated:
		x.life.end()
		return nil
	case history.CancelRequested:
		return x.cancelInstance(ev)
	case history.ActivityCancelRequested:
		x.tasks.cancel(t, &newCancellation(cmp.Or(ev.Reason, reasonRequested), ev.Message).Failure)
		return nil
	case history.ActivityRetryScheduled:
		t.setAttempt(int32(ev.Attempt))
		return nil
	default:
		return x.record(t, ev)
	}
}

// cancelInstance cancels the scope of the body, as a client requested. An orchestration that has not begun has nothing to unwind: it ends, and
// its code never runs. One that the same turn terminates ends by that.
func (x *execution) cancelInstance(ev *history.Event) error {
	with := newCancellation(cmp.Or(ev.Reason, reasonRequested), ev.Message)
	if x.life.hasBegun() {
		return x.scopes.cancelRoot(with)
	}

	x.scopes.root.end(with)
	if x.life.doomed {
		return nil
	}
	return x.conclude(Ending{Kind: history.OrchestrationCancelled})
}

// record applies an outcome: it settles the task, or a child is tried again. It is the end of a cancelled task whose end is waited for,
// whatever the outcome; of other cancelled tasks it is dropped.
func (x *execution) record(t *Task, ev *history.Event) error {
	result, ok := ev.Result.Document()
	if !ok {
		if ev.Result.IsEncoded() {
			result, ok = json.RawMessage(ev.Result), true
			t.setSealed(true)
			if ev.Result.StorageKey() != "" {
				x.payloads.AddResult(t.id, t)
			}
		}
	}
	if !ok {
		return fmt.Errorf("replay: instance %q: the result in event #%d was not fetched", x.options.InstanceID, ev.ID)
	}

	x.tasks.forget(t)
	f := failure(ev) // once: a larger frame would have the new stack of every turn grow
	switch {
	case t.done:
		return nil
	case t.cancelled:
		x.tasks.settleEnded(t, t.endOf(ev))
		return nil
	case t.expires:
		t.markDone()
		return x.scopes.expire(t.scope, f)
	case ev.Kind == history.TimerFired && t.child != nil:
		return x.restart(t)
	case ev.Kind == history.SubOrchestrationFailed:
		if again, err := x.retry(t, f); again || err != nil {
			return err
		}
	}

	x.tasks.settle(t, result, f)
	return nil
}

// failure returns what an outcome failed with; nil when it did not.
func failure(ev *history.Event) *history.Failure {
	switch ev.Kind {
	case history.UpdateAnswered:
		return ev.Error
	case history.ActivityFailed, history.OutputFailed, history.SubOrchestrationFailed, history.ExternalEventUndelivered:
		if ev.Error == nil {
			return &history.Failure{Type: history.TypeError, Message: "no error was reported"}
		}
		return ev.Error
	default:
		return nil
	}
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
