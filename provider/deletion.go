package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// DeletedMessage is the message of the outcome that the parent of a deleted instance receives.
const DeletedMessage = "deleted"

// Fence returns the events that end an execution which is deleted before it is over: the given cancels, which cancel
// what its history has left outstanding (history.State.CancelOutstanding), and an end that reports to its parent that
// it was terminated. last is the id of the last event. Committed as the next segment, they make the commit of any turn
// on the earlier head fail (R17).
func Fence(cancels []history.Event, last int64, now time.Time) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated, Message: DeletedMessage}
	events := append(slices.Clip(cancels), end)
	for i := range events {
		events[i].ID = last + 1 + int64(i)
		events[i].Time = now
	}
	return events
}

// WithDeletion returns the cancel record of an execution that was deleted: earlier decisions stand, and everything else
// is cancelled too. The last decision always carries the deletion as its reason, even where an earlier one left nothing
// to decide.
func (c Cancels) WithDeletion(now time.Time) Cancels {
	if c.deleted() {
		return c
	}
	return append(slices.Clip(c), ActivityCancel{Open: true, Reason: history.ReasonInstanceDeleted, At: now})
}

func (c Cancels) deleted() bool {
	n := len(c)
	return n > 0 && c[n-1].Open && c[n-1].Reason == history.ReasonInstanceDeleted
}
