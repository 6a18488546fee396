package dispatch

import "github.com/perdure/perdure/history"

// parked is what history says of the inputs that came while the code could not take them (R18).
type parked struct {
	// waiting is how many no turn has taken.
	waiting int
	// due: the last turn took some, since all were too much for a commit: the next one follows whatever arrives.
	due bool
}

// apply takes over what events say.
func (p *parked) apply(events []history.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.OrchestrationStarted:
			p.waiting = len(e.Inputs)
		case e.Kind == history.InputsParked:
			p.waiting, p.due = p.waiting+len(e.Inputs), false
		case e.Kind == history.TurnStarted && e.Parked > 0:
			p.waiting = max(p.waiting-int(e.Parked), 0)
			p.due = p.waiting > 0
		case e.Kind == history.TurnStarted || e.Kind.Terminal():
			p.waiting, p.due = 0, false
		default: // nothing of what is parked
		}
	}
}
