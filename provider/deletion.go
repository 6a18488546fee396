package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// DeletedMessage is what the parent of a deleted instance is told.
const DeletedMessage = "deleted"

// Fence are the events that end an execution which is deleted before it is over: what its history has left outstanding is cancelled, and
// the parent is told that its child was terminated. last is the id of the last event. Committed as the next segment they keep
// out whoever still runs a turn on the head before it (R17).
func Fence(outstanding *history.Outstanding, last int64, now time.Time) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated, Message: DeletedMessage}
	events := append(outstanding.Cancel(history.ReasonInstanceDeleted), end)
	for i := range events {
		events[i].ID, events[i].Time = last+1+int64(i), now
	}
	return events
}

// Deleted is the cancel record of an execution that was deleted: what was decided before stands, and all else is cancelled too.
// Its last decision says so, even where one before it left nothing to decide.
func (c Cancels) Deleted(now time.Time) Cancels {
	if c.deleted() {
		return c
	}
	return append(slices.Clip(c), ActivityCancel{Open: true, Reason: history.ReasonInstanceDeleted, At: now})
}

func (c Cancels) deleted() bool {
	n := len(c)
	return n > 0 && c[n-1].Open && c[n-1].Reason == history.ReasonInstanceDeleted
}
