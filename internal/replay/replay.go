package replay

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// replay applies committed events. What the code decides on the way moves x.next as well.
func (x *execution) replay(events []history.Event) {
	x.replaying, x.past, x.next = true, events, 0
	for x.next < len(x.past) && !x.stuck() {
		ev := &x.past[x.next]
		if ev.ID != x.lastID+1 {
			x.void = fmt.Errorf("replay: instance %q: event #%d (%s) where #%d is due", x.options.InstanceID, ev.ID, ev.Kind, x.lastID+1)
			return
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
	case history.TurnStarted:
		x.now = ev.Time
		if !x.started {
			x.begin()
		}
	default:
		t := x.outstanding(ev)
		if t == nil {
			return x.divergence("nothing that this could be the outcome of")
		}
		if err := x.record(t, ev); err != nil {
			return err
		}
	}
	x.next++
	x.lastID = ev.ID
	return nil
}
