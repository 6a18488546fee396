package turns

import (
	"time"

	"github.com/perdure/perdure/provider"
)

// An instance whose inline activities end it at once is written twice: when it starts, and when it is over. That it was Running in between, nobody would
// have seen. So a turn behind which the same invocation goes on leaves the status to a later one, for as long as nobody would miss it. If the process
// dies before, the repeated dispatch writes it, as it does any (R9).

// showWithin is for how long, from the begin of an invocation, a status is left to a later turn.
const showWithin = time.Second

// shows is how the commit of a turn writes the status, once its events are complete.
func (t *turn) shows() provider.StatusWrite {
	s := t.s
	switch last := &t.out.Events[len(t.out.Events)-1]; {
	case last.IsInlineOutcome() && s.o.options.Clock().Sub(s.began) < showWithin && !s.asked.is && !chainIsLong(s, 1): // a turn is due, and made here
		return provider.StatusWriteDeferred
	case s.unshown:
		return provider.StatusWriteAlways
	default:
		return provider.StatusWriteIfChanged
	}
}
