package provider

import "fmt"

// Retries asks for decisions on attempts of activities, from a caller with a view of their execution.
type Retries struct {
	InstanceID string
	// Head is where the view ends.
	Head Head
	// Failed are failures with a Run, of activities that are open in the view.
	Failed []ActivityOutcome
	// Due are attempts whose timers have fired, of activities that are open in the view.
	Due []DueAttempt
}

// DueAttempt is an attempt that is due.
type DueAttempt struct {
	ActivityID int64
	// Attempt is the number of the attempt, from 2 on; 0 is whichever is the current one.
	Attempt int
	// By names the message by which it is due. Where a failure of the run LimitRun(Attempt, By) has led to the current
	// attempt, that is sent again.
	By string
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
}

// LimitRun names the failure of a pending attempt whose limits were over when a message had them looked at
// (ActivityOutcome.Run).
func LimitRun(attempt int, by string) string { return fmt.Sprintf("limit.%d.%s", attempt, by) }

// Retried is the answer to Retries.
type Retried struct {
	// Failed are the verdicts on Retries.Failed, in its order.
	Failed []RetryVerdict
	// Refused are attempts that can never be sent: the activity, and the error.
	Refused []OutputFailure
	// Waiting has for each of Retries.Due the activity's current attempt where that is pending: it was not sent, and its
	// limits are to be looked at. Nil where none is.
	Waiting []ActivityRetry
	// Verified reports that Retries.Head was seen to be the head.
	Verified bool
}

// RetryVerdict is the decision on a failed attempt.
type RetryVerdict int

const (
	// RetryStale is for an attempt that is not the activity's current one: it has no effect.
	RetryStale RetryVerdict = iota
	// RetryNext is for an attempt whose next attempt is the current one, and was sent or refused.
	RetryNext
	// RetryOver is for the current attempt where no next one follows: the activity has failed.
	RetryOver
)
