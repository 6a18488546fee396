package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

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
