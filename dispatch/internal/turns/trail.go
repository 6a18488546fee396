package turns

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// trail is what leads back to what the last turns have caused, where they took parked inputs in parts (R18).
type trail struct {
	// alone: no message leads back to what the last turn has caused. It took some of the parked inputs alone, and left the message that led
	// to it for later (R4).
	alone bool
	// led: one of these turns has consumed a wake, which is not acknowledged before the last part is taken.
	led bool
}

// apply takes a segment into account, which has consumed messages or has not.
func (t *trail) apply(events []history.Event, consumed bool) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.TurnStarted && e.ParkedConsumed > 0:
			led := t.led || consumed
			*t = trail{alone: !led, led: led}
		case e.Kind == history.ExecutionSuspended, e.Kind == history.ExecutionResumed, e.Kind == history.ExecutionRestarted, e.Kind == history.OrchestrationStarted, e.Kind == history.InputsParked, e.Kind == history.TurnStarted, e.Kind.Terminal():
			*t = trail{}
		default: // nothing of what is parked
		}
	}
}

// applyAll takes a history into account.
func (t *trail) applyAll(segments []provider.Segment) {
	before := provider.Position{}
	for i := range segments {
		t.apply(segments[i].Events, segments[i].Watermark != before)
		before = segments[i].Watermark
	}
}
