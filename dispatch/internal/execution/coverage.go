package execution

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// coverage records whether a message refers to the outputs of the last turns, if they took parked inputs in parts
// (R18). A redelivery of such a message repeats their dispatch (R4).
type coverage struct {
	// none is set if no message refers to the outputs of the last turn. The turn took only parked inputs, and left the
	// message that caused it to a later turn.
	none bool
	// byWake is set if one of these turns has consumed a wake. The wake is acknowledged after the last part.
	byWake bool
}

// apply applies a segment. consumed is set if the segment has consumed messages.
func (c *coverage) apply(events []history.Event, consumed bool) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.TurnStarted && e.ParkedConsumed > 0:
			byWake := c.byWake || consumed
			*c = coverage{none: !byWake, byWake: byWake}
		case e.Kind == history.ExecutionSuspended, e.Kind == history.ExecutionResumed,
			e.Kind == history.ExecutionRestarted, e.Kind == history.OrchestrationStarted,
			e.Kind == history.InputsParked, e.Kind == history.TurnStarted, e.Kind.Terminal():
			*c = coverage{}
		default: // the event does not concern parked inputs
		}
	}
}

func (c *coverage) applyAll(segments []provider.Segment) {
	before := provider.Position{}
	for i := range segments {
		c.apply(segments[i].Events, segments[i].Watermark != before)
		before = segments[i].Watermark
	}
}
