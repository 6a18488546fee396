package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// DeletedMessage is the message of the failure that the parent of a deleted instance receives.
const DeletedMessage = "deleted"

// DeletionEvents returns the events that end an execution that is deleted before it has ended. They are cancels, which
// cancel its outstanding work (history.State.CancelOutstanding), and an OrchestrationTerminated event for the parent.
// last is the ID of the last event of the history. The caller commits the events as the next segment, which makes any
// concurrent commit fail (R17).
func DeletionEvents(cancels []history.Event, last int64, now time.Time) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated, Message: DeletedMessage}
	events := append(slices.Clip(cancels), end)
	for i := range events {
		events[i].ID = last + 1 + int64(i)
		events[i].Time = now
	}
	return events
}

// WithDeletion returns the cancel record of a deleted execution. It keeps earlier decisions and adds a decision that
// cancels all activities because of the deletion.
func (c Cancels) WithDeletion(now time.Time) Cancels {
	if c.deleted() {
		return c
	}
	return append(slices.Clip(c), ActivityCancel{All: true, Reason: history.ReasonInstanceDeleted, At: now})
}

func (c Cancels) deleted() bool {
	n := len(c)
	return n > 0 && c[n-1].All && c[n-1].Reason == history.ReasonInstanceDeleted
}
