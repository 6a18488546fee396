package replay

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// replayRun is a running replay. Decisions of the code also move its cursor.
type replayRun struct {
	x    *execution
	past *journal.Cursor
}

// run applies committed events.
func (r replayRun) run(events []history.Event) {
	x, past := r.x, r.past
	past.Start(events)
	x.scheduler.Gate().StartReplay()

	for !past.Done() && !x.scheduler.IsVoid() {
		ev := past.Next()
		if ev.ID != past.LastID()+1 {
			x.scheduler.Void(fmt.Errorf("replay: instance %q: event #%d (%s) instead of #%d", x.options.InstanceID,
				ev.ID, ev.Kind, past.LastID()+1))
			return
		}

		ended := x.lifecycle.hasEnded()
		switch {
		case !ended && past.EndsWithoutCode(x.parked.isBlocked()):
			past.PassAll()
			x.lifecycle.end()
		case !ended && journal.PrecedesTermination(ev):
			x.scheduler.Void(r.cancelAll())
		case ended || !journal.IsInput(ev):
			x.scheduler.Void(past.Divergence(x.idle()))
		default:
			x.scheduler.Void(r.apply(ev))
			x.scheduler.Run(&x.lifecycle.ended)
		}
	}
}

// apply applies an event that is not a decision.
func (r replayRun) apply(ev *history.Event) error {
	x := r.x
	switch ev.Kind {
	case history.OrchestrationStarted:
		if err := r.start(ev); err != nil {
			return err
		}
	case history.InputsParked:
		x.parked = x.parked.add(ev, &x.payloads)
	case history.ExecutionSuspended, history.ExecutionResumed: // the next turn takes the parked inputs
		x.parked = x.parked.block()
		x.mailbox().Remember(ev.EventID)
	case history.ExecutionRestarted: // only inputs for the first turn remain of the copied history
		x.parked = x.parked.add(ev, &x.payloads).block()
		x.identity.Become(history.ExecutionRef{InstanceID: ev.InstanceID, ExecutionID: ev.ExecutionID})
	case history.TurnStarted:
		arrived := r.startTurn(ev)
		r.past.Pass() // decisions may follow
		return x.applyArrived(arrived)
	default:
		if ev.IsInlineOutcome() {
			if err := r.arrive(ev); err != nil {
				return err
			}
			break
		}
		t, applies := x.find(ev)
		if !applies {
			return r.past.Divergence("no task with this outcome")
		}
		r.past.Pass() // decisions may follow
		return x.apply(t, ev)
	}

	r.past.Pass()
	return nil
}

// start applies the first event of an execution.
func (r replayRun) start(ev *history.Event) error {
	x := r.x
	input, ok := ev.Input.Document()
	if !ok && ev.Input.IsEncoded() {
		input, ok = json.RawMessage(ev.Input), true
		x.lifecycle.setEncoded(ev.Name)
	}
	if !ok {
		return fmt.Errorf("replay: instance %q: the input was not fetched", x.options.InstanceID)
	}

	if ev.ExecutionID != "" {
		x.identity.Become(history.ExecutionRef{InstanceID: ev.InstanceID, ExecutionID: ev.ExecutionID})
	}
	x.lifecycle.setStart(input, ev.StartAt)
	if len(ev.Inputs) > 0 {
		x.parked = x.parked.add(ev, &x.payloads)
	}
	if len(ev.CarriedEvents) > 0 || len(ev.EventIDs) > 0 {
		return x.mailbox().Inherit(ev)
	}
	return nil
}

// startTurn starts a turn of the past, and returns the number of arrived outcomes that it took.
func (r replayRun) startTurn(ev *history.Event) (arrived int) {
	x := r.x
	x.journal.Draft.SetTime(ev.Time)
	x.journal.Draft.SetLargePayloads(ev.LargePayloads)
	r.past.SetBuild(ev.BuildID)
	arrived = r.dropTaken(int(ev.ParkedConsumed))

	turn := r.past.Remaining()
	x.lifecycle.setTerminating(!x.lifecycle.hasStarted() && (isTerminated(turn) || journal.EndsWithoutCode(turn[1:])))
	if x.lifecycle.mayStart(ev.Time) {
		x.start()
	}
	return arrived
}

// dropTaken drops the parked inputs that a turn of the past took: the first n waiting inputs, or all if n is 0. It
// returns the number of dropped inputs that are arrived outcomes, which the code has not observed yet.
func (r replayRun) dropTaken(n int) (arrived int) {
	arrived = r.x.tasks.Arrivals.Count()
	if n == 0 {
		r.x.parked.dropAll()
		return arrived
	}
	arrived = min(arrived, n)
	r.x.parked.drop(n - arrived)
	return arrived
}

// arrive adds the outcome of an inline activity. The code observes it in the next turn.
func (r replayRun) arrive(ev *history.Event) error {
	t, applies := r.x.find(ev)
	if !applies || r.x.tasks.Arrivals.Has(t.ID()) {
		return r.past.Divergence("no task with this outcome")
	}
	r.x.tasks.Arrivals.Add(ev)
	return nil
}

// cancelAll repeats the cancellations that precede a termination.
func (r replayRun) cancelAll() error {
	if err := r.x.cancelAll(history.OrchestrationTerminated); err != nil {
		return err
	}
	if next := r.past.Next(); next == nil || next.Kind != history.OrchestrationTerminated {
		return r.past.Divergence(string(history.OrchestrationTerminated))
	}
	return nil
}
