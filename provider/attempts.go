package provider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// ActivityRetry is the attempt record of an activity. It contains the current attempt after earlier attempts failed.
// Each activity has at most one record, which is stored outside the history.
type ActivityRetry struct {
	// ActivityID is the ID of the event that scheduled the activity.
	ActivityID int64
	// Attempt is the number of the current attempt, from 2. It is 1 for a first attempt that is Pending.
	Attempt int
	// Run identifies the run of the previous attempt that failed (ActivityOutcome.Run).
	Run string
	// At is the time at which the attempt is due. FailedAt is the time at which it became the current attempt.
	At, FailedAt time.Time
	// Error is the failure of the previous attempt, truncated to a few KiB. It is never nil.
	Error *history.Failure
	// Ended is the last reported ActivityOutcome.Ended of an earlier attempt, and usually empty.
	Ended string
	// Pending is set if the current attempt waits for asynchronous completion.
	Pending *PendingAttempt
	// NextCheckAt is the time of the next check of the pending attempt's timeouts, or zero if the attempt has no
	// timeouts. NextCheckID is the ID of the record that caused this decision. It also serves as a version, because
	// each change of a pending attempt sets a new value.
	NextCheckAt time.Time
	NextCheckID string
}

// PendingAttemptUpdate is a request to store an attempt as pending, or to set the next check of its timeouts.
type PendingAttemptUpdate struct {
	ActivityID int64
	Attempt    int
	// Was is the value that ReadRetry returned. Nothing is written if another value is stored.
	Was     ActivityRetry
	Pending PendingAttempt
	// NextCheckAt and NextCheckID are described in ActivityRetry.
	NextCheckAt time.Time
	NextCheckID string
	// Sent is true if the value is already stored, so that only the timer is sent again.
	Sent bool
}

// PendingHeartbeat is a heartbeat that was sent with a completion token.
type PendingHeartbeat struct {
	ActivityID int64
	Attempt    int
	At         time.Time
	// Details are described in ActivityRecord. If Details is empty, the stored details do not change.
	Details json.RawMessage
	// Cancelled is true if the response to this heartbeat reports the cancellation. The time of the first such
	// heartbeat is stored as ActivityRecord.SeenAt.
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
	// MessageID identifies the message that made the attempt due. If the current attempt follows a failure of the run
	// TimeoutRunID(Attempt, MessageID), the current attempt is sent again.
	MessageID string
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
}

// TimeoutRunID returns the ActivityOutcome.Run of a pending attempt that timed out. by is the ID of the message that
// caused the check.
func TimeoutRunID(attempt int, by string) string { return fmt.Sprintf("limit.%d.%s", attempt, by) }

// RetryResult is the result of RetryActivities.
type RetryResult struct {
	// Failed are the decisions on RetryRequest.Failed, in the same order.
	Failed []RetryVerdict
	// RejectedOutputs are attempts that can never be sent.
	RejectedOutputs []OutputFailure
	// Waiting contains the current attempts of RetryRequest.Due that are pending. They were not sent, and their
	// timeouts must be checked.
	Waiting []ActivityRetry
	// Verified is true if RetryRequest.Head was found to be the head.
	Verified bool
}

// RetryVerdict is the decision on a failed attempt.
type RetryVerdict int

const (
	// RetryStale means that the attempt is not the current attempt. Its failure has no effect.
	RetryStale RetryVerdict = iota
	// RetryNext means that the next attempt is now the current attempt, and was sent or rejected.
	RetryNext
	// RetryExhausted means that no attempt follows the current attempt. The activity has failed.
	RetryExhausted
)
