package provider

import "fmt"

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
