package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// ActivityRetry is the current attempt of an activity whose earlier attempts have failed. It is stored apart from
// history, which records attempts only with the outcome: one ActivityRetry for each activity, however many attempts
// there were.
type ActivityRetry struct {
	// ActivityID is the id of the event that scheduled the activity.
	ActivityID int64
	// Attempt is the number of the current attempt, from 2 on. It waits until it is due, lies in its queue, or runs.
	Attempt int
	// Run names the run of the previous attempt whose failure led to this one (ActivityOutcome.Run).
	Run string
	// At is when the attempt is due; FailedAt is when it became the current one.
	At, FailedAt time.Time
	// Error is the failure of the previous attempt, cut to a few KiB. Never nil.
	Error *history.Failure
	// Ended is how an earlier attempt ended (ActivityOutcome.Ended): the last one that reported it. Mostly empty.
	Ended string
}
