package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// ActivityRetry is the attempt that an activity is at whose attempts before it have failed. It is kept apart from history, where an
// attempt enters with the outcome: one for each activity, however many attempts there were.
type ActivityRetry struct {
	// ActivityID is the id of the event that scheduled the activity.
	ActivityID int64
	// Attempt is the current one, from 2 on: it waits for its time, lies in its queue or runs.
	Attempt int
	// Run names the run of the attempt before whose failure led to it (ActivityOutcome.Run).
	Run string
	// At is when the attempt is due, FailedAt when it became the current one.
	At, FailedAt time.Time
	// Error is what the attempt before failed with, cut to a few KiB. Never nil.
	Error *history.Failure
	// Ended is how an attempt before ended (ActivityOutcome.Ended), of those the last of which that was told; mostly empty.
	Ended string
}
