package replay

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// replay applies committed events. What the code decides on the way moves x.next as well.
func (x *execution) replay(events []history.Event) {
	x.replaying, x.past, x.next = true, events, 0
	x.mode.CompareAndSwap(live, reliving)
	for x.next < len(x.past) && !x.stuck() {
		ev := &x.past[x.next]
		if ev.ID != x.lastID+1 {
			x.void = fmt.Errorf("replay: instance %q: event #%d (%s) where #%d is due", x.options.InstanceID, ev.ID, ev.Kind, x.lastID+1)
			return
		}
		if !x.ended && x.endsWithoutCode() {
			x.next, x.lastID, x.ended = len(x.past), x.past[len(x.past)-1].ID, true
			return
		}
		if !x.ended && releases(ev) {
			x.void = x.reliveRelease()
			continue
		}
		if x.ended || !isInput(ev) {
			x.void = x.divergence(x.idle())
			return
		}
		if x.void = x.relive(ev); x.void == nil {
			x.run()
		}
	}
}

// relive applies one event of the past that is no decision.
func (x *execution) relive(ev *history.Event) error {
	switch ev.Kind {
	case history.OrchestrationStarted:
		input, ok := ev.Input.Document()
		if !ok {
			return fmt.Errorf("replay: instance %q: the input was not fetched from where it lies", x.options.InstanceID)
		}
		x.input, x.readable = input, true
		x.keep(ev)
		if ev.StartAt != nil {
			x.startAt = *ev.StartAt
		}
		if err := x.inherit(ev); err != nil {
			return err
		}
	case history.InputsParked:
		x.keep(ev)
		x.blocked = true
	case history.TurnStarted:
		x.now, x.blocked, x.decidedBy = ev.Time, false, ev.BuildID
		if n := int(ev.Parked); n > 0 {
			x.parked = x.parked[min(n, len(x.parked)):]
		} else {
			x.parked = nil // this turn took them
		}
		x.doomed = !x.started && (terminated(x.past[x.next:]) || endsWithoutCode(x.past[x.next+1:]))
		if x.mayBegin() && !x.doomed {
			x.begin()
		}
	default:
		t, applies := x.concerns(ev)
		if !applies {
			return x.divergence("nothing that this could be the outcome of")
		}
		x.pass(ev)
		return x.accept(t, ev) // which may be followed by decisions
	}
	x.pass(ev)
	return nil
}

// pass moves behind an event.
func (x *execution) pass(ev *history.Event) {
	x.next++
	x.lastID = ev.ID
}
