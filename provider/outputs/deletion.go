package outputs

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// DeletedMessage is the message of the failure that the parent of a deleted instance receives.
const DeletedMessage = "deleted"

// Deletion describes the deletion of an execution that has not ended.
type Deletion struct {
	// Cancels cancel the outstanding work of the execution (history.State.CancelOutstanding), as far as it is known.
	Cancels []history.Event
	// RequestedBy is the caller, and TraceParent is the trace context of the execution's start.
	RequestedBy string
	TraceParent history.TraceParent
	At          time.Time
}

// Events returns the events that end the execution. They are the cancels, and an OrchestrationTerminated event for the
// parent and for the senders of updates. state is the state of the whole history. The caller commits the events as the
// next segment, which makes any concurrent commit fail (R17).
func (d *Deletion) Events(state *history.State) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated, Message: DeletedMessage, RequestedBy: d.RequestedBy}
	events := append(slices.Clip(d.Cancels), end)
	for i := range events {
		events[i].ID = state.LastID + 1 + int64(i)
		events[i].Time = d.At
	}
	events[len(events)-1].Callers = history.UnansweredCallers(state, events)
	events[0].TraceParent = d.TraceParent
	return events
}
