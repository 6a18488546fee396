package dispatch

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// parked is what history says of the inputs that came while the code could not take them (R18).
type parked struct {
	// waiting is how many no turn has taken.
	waiting int
	// due: the last turn took some, since all were too much for a commit: the next one follows whatever arrives.
	due bool
	// alone: no message leads back to what the last turn has caused. It took some of them alone, and left the message that led to it for
	// later (R4).
	alone bool
	// led: the last turns took parts, and one of them has consumed a wake, which is not acknowledged before the last part is taken.
	led bool
}

// apply takes over what a segment says, which has consumed messages or has not.
func (p *parked) apply(events []history.Event, consumed bool) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.OrchestrationStarted:
			*p = parked{waiting: len(e.Inputs)}
		case e.Kind == history.InputsParked:
			*p = parked{waiting: p.waiting + len(e.Inputs)}
		case e.Kind == history.TurnStarted && e.Parked > 0:
			waiting, led := max(p.waiting-int(e.Parked), 0), p.led || consumed
			*p = parked{waiting: waiting, due: waiting > 0, alone: !led, led: led}
		case e.Kind == history.TurnStarted || e.Kind.Terminal():
			*p = parked{}
		default: // nothing of what is parked
		}
	}
}

// applyAll takes over what a history says.
func (p *parked) applyAll(segments []provider.Segment) {
	before := provider.Position{}
	for i := range segments {
		p.apply(segments[i].Events, segments[i].Watermark != before)
		before = segments[i].Watermark
	}
}
