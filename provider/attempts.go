package provider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// ActivityRetry is the attempt record of an activity: its current attempt after earlier attempts failed. It is stored
// apart from history, one per activity.
type ActivityRetry struct {
	// ActivityID is the ID of the event that scheduled the activity.
	ActivityID int64
	// Attempt is the number of the current attempt, from 2. It is 1 for a first attempt that is Pending.
	Attempt int
	// Run identifies the run of the previous attempt that failed (ActivityOutcome.Run).
	Run string
	// At is the time when the attempt is due. FailedAt is the time when it became the current one.
	At, FailedAt time.Time
	// Error is the failure of the previous attempt, cut to a few KiB. It is never nil.
	Error *history.Failure
	// Ended is the last reported ActivityOutcome.Ended of an earlier attempt, and usually empty.
	Ended string
	// Pending is set if the current attempt waits for asynchronous completion.
	Pending *PendingAttempt
	// NextCheckAt is the time of the next check of the pending attempt's limits, or zero if it has none. NextCheckID is
	// the ID of the record that caused this decision. It also serves as a version: each change of a pending attempt has
	// another value.
	NextCheckAt time.Time
	NextCheckID string
}

// PendingAttemptUpdate is a request to store an attempt as pending, or to set the next check of its limits.
type PendingAttemptUpdate struct {
	ActivityID int64
	Attempt    int
	// Was is the value that ReadRetry returned. Nothing is written if another value is stored.
	Was     ActivityRetry
	Pending PendingAttempt
	// NextCheckAt and NextCheckID are described in ActivityRetry.
	NextCheckAt time.Time
	NextCheckID string
	// Sent is true if the value is stored already. Only the timer is sent again.
	Sent bool
}

// PendingHeartbeat is a heartbeat that was sent with a completion token.
type PendingHeartbeat struct {
	ActivityID int64
	Attempt    int
	At         time.Time
	// Details are described in ActivityRecord. If they are empty, the stored details stay.
	Details json.RawMessage
	// Cancelled is true if the response to this heartbeat reports the cancellation. The first such time is stored as
	// ActivityRecord.SeenAt.
	Cancelled bool
}

// RetryRequest contains failed and due attempts of an execution, for RetryActivities.
type RetryRequest struct {
	InstanceID string
	// Head is the head of the history that the caller has read.
	Head Head
	// Failed are failures with a Run of activities that are open.
	Failed []ActivityOutcome
	// Due are attempts of open activities whose timers have fired.
	Due []DueAttempt
}

// DueAttempt is an attempt that is due.
type DueAttempt struct {
	ActivityID int64
	// Attempt is the number of the attempt, from 2. 0 selects the current attempt.
	Attempt int
	// MessageID identifies the message that made the attempt due. If a failure of the run TimeoutRunID(Attempt,
	// MessageID) led to the current attempt, that attempt is sent again.
	MessageID string
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
}

// TimeoutRunID returns the ActivityOutcome.Run of a pending attempt that exceeded a limit. by is the ID of the message
// that found it.
func TimeoutRunID(attempt int, by string) string { return fmt.Sprintf("limit.%d.%s", attempt, by) }

// RetryResult is the result of RetryActivities.
type RetryResult struct {
	// Failed are the verdicts on RetryRequest.Failed, in the same order.
	Failed []RetryVerdict
	// RejectedOutputs are attempts that can never be sent.
	RejectedOutputs []OutputFailure
	// Waiting contains, for each entry of RetryRequest.Due, the current attempt if it is pending. It was not sent, and
	// its limits must be checked. It is nil if there is none.
	Waiting []ActivityRetry
	// Verified is true if RetryRequest.Head was found to be the head.
	Verified bool
}

// RetryVerdict is the decision on a failed attempt.
type RetryVerdict int

const (
	// RetryStale means that the attempt is not the current one. Its failure has no effect.
	RetryStale RetryVerdict = iota
	// RetryNext means that the next attempt is the current one, and was sent or rejected.
	RetryNext
	// RetryExhausted means that no attempt follows the current one. The activity has failed.
	RetryExhausted
)
