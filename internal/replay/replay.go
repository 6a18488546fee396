package replay

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// replay applies committed events. What the code decides on the way moves the cursor as well.
func (x *execution) replay(events []history.Event) {
	past := &x.journal.Cursor
	past.Start(events)
	x.scheduler.Gate().StartReplay()

	for !past.Done() && !x.scheduler.IsVoid() {
		ev := past.Next()
		if ev.ID != past.LastID()+1 {
			x.scheduler.Void(fmt.Errorf("replay: instance %q: event #%d (%s) instead of #%d", x.options.InstanceID,
				ev.ID, ev.Kind, past.LastID()+1))
			return
		}

		ended := x.life.hasEnded()
		switch {
		case !ended && past.EndsWithoutCode(x.parking.isBlocked()):
			past.PassAll()
			x.life.end()
		case !ended && journal.PrecedesTermination(ev):
			x.scheduler.Void(x.replayRelease())
		case ended || !journal.IsInput(ev):
			x.scheduler.Void(past.Divergence(x.idle()))
		default:
			x.scheduler.Void(x.replayInput(ev))
			x.scheduler.Run(x.life.hasEnded)
		}
	}
}

// replayInput applies one event of the past that is no decision.
func (x *execution) replayInput(ev *history.Event) error {
	switch ev.Kind {
	case history.OrchestrationStarted:
		if err := x.replayStart(ev); err != nil {
			return err
		}
	case history.InputsParked:
		x.parking = x.parking.add(ev, &x.payloads)
	case history.ExecutionSuspended, history.ExecutionResumed: // they cause nothing here: what is parked meanwhile, the next turn takes
		x.parking = x.parking.stop()
		x.mailbox().Remember(ev.EventID)
	case history.ExecutionRestarted: // what it has taken over caused all that it was to cause, but for what the first turn takes
		x.parking = x.parking.add(ev, &x.payloads).stop()
		x.identity.Become(history.ExecutionRef{InstanceID: ev.InstanceID, ExecutionID: ev.ExecutionID})
	case history.TurnStarted:
		arrived := x.replayTurn(ev)
		x.journal.Cursor.Pass() // decisions may follow
		return seeArrived(x, arrived)
	default:
		if ev.IsInlineOutcome() {
			if err := arrive(x, ev); err != nil {
				return err
			}
			break
		}
		t, applies := x.concerns(ev)
		if !applies {
			return x.journal.Cursor.Divergence("no task with this outcome")
		}
		x.journal.Cursor.Pass() // decisions may follow
		return x.accept(t, ev)
	}

	x.journal.Cursor.Pass()
	return nil
}

// replayStart applies the event that every execution begins with.
func (x *execution) replayStart(ev *history.Event) error {
	input, ok := ev.Input.Document()
	if !ok && ev.Input.IsEncoded() {
		input, ok = json.RawMessage(ev.Input), true
		x.life.setSealed(ev.Name)
	}
	if !ok {
		return fmt.Errorf("replay: instance %q: the input was not fetched", x.options.InstanceID)
	}

	if ev.ExecutionID != "" {
		x.identity.Become(history.ExecutionRef{InstanceID: ev.InstanceID, ExecutionID: ev.ExecutionID})
	}
	x.life.setStart(input, ev.StartAt)
	if len(ev.Inputs) > 0 {
		x.parking = x.parking.add(ev, &x.payloads)
	}
	if len(ev.CarriedEvents) > 0 || len(ev.EventIDs) > 0 {
		return x.mailbox().Inherit(ev)
	}
	return nil
}

// replayTurn begins a turn of the past, and returns how many outcomes that had arrived it began with.
func (x *execution) replayTurn(ev *history.Event) (arrived int) {
	x.journal.Draft.SetTime(ev.Time)
	x.journal.Draft.SetLargePayloads(ev.LargePayloads)
	x.journal.Cursor.SetBuild(ev.BuildID)
	arrived = dropTaken(x, int(ev.ParkedConsumed))

	turn := x.journal.Cursor.Remaining()
	x.life.setDoomed(!x.life.hasBegun() && (terminated(turn) || journal.EndsWithoutCode(turn[1:])))
	if x.life.mayBegin(ev.Time) {
		x.begin()
	}
	return arrived
}
