package journal

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// EndsHere reports whether the next event is the end of an execution, or a cancellation that precedes the end.
func (c *Cursor) EndsHere(end history.Kind) bool {
	next := c.Next()
	return next != nil && (next.Kind == end || next.Reason == history.TerminalReason(end))
}

// EndsWithoutCode reports whether the remaining events are an end without the code. If the code was not blocked when it
// was terminated, it must match the cancellations of its outstanding tasks.
func (c *Cursor) EndsWithoutCode(blocked bool) bool {
	terminated := c.past[len(c.past)-1].Kind == history.OrchestrationTerminated
	return (blocked || !terminated) && EndsWithoutCode(c.Remaining())
}

// EndsWithoutCode reports whether all events are an end without the code. Such an end is the termination of a blocked
// instance, or a failure because the code differs from the history or its turn was too large for a commit. The code
// does not have to match the cancellations before such an end.
func EndsWithoutCode(events []history.Event) bool {
	if len(events) == 0 {
		return false
	}

	end := &events[len(events)-1]
	if !end.EndsWithoutCode() {
		return false
	}

	reason := history.TerminalReason(end.Kind)
	return !slices.ContainsFunc(events[:len(events)-1], func(ev history.Event) bool {
		return ev.Reason != reason || ev.IsInput()
	})
}

// PrecedesTermination reports whether an event is a cancellation that the engine decides before a termination. No other
// decision precedes its cause, because no event may follow a termination.
func PrecedesTermination(ev *history.Event) bool {
	switch ev.Kind {
	case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested,
		history.UpdateCompleted:
		return !ev.IsInput() && ev.Reason == history.TerminalReason(history.OrchestrationTerminated)
	default:
		return false
	}
}

// IsInput reports whether an event is not a decision of the code or the engine.
func IsInput(ev *history.Event) bool {
	switch ev.Kind {
	case history.OrchestrationStarted, history.TurnStarted, history.InputsParked:
		return true
	default:
		return ev.IsInput()
	}
}
