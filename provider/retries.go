package provider

// Retries is what is to become of attempts of activities, as whoever has a view of their execution asks for it.
type Retries struct {
	InstanceID string
	// Head is where the view ends.
	Head Head
	// Failed are failures with a Run, of activities that are open in the view.
	Failed []ActivityOutcome
	// Due are attempts whose timers have fired, of activities that are open in the view.
	Due []DueAttempt
}

// DueAttempt is an attempt whose time has come.
type DueAttempt struct {
	ActivityID int64
	// Attempt is the number of the attempt, from 2 on; 0: whichever is the current one.
	Attempt int
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64
}

// Retried is what became of Retries.
type Retried struct {
	// Failed are the verdicts on Retries.Failed, in its order.
	Failed []RetryVerdict
	// Refused are attempts that can never be sent: of which activity, and why.
	Refused []OutputFailure
	// Verified: Retries.Head was seen to be the head.
	Verified bool
}

// RetryVerdict is what a failed attempt comes to.
type RetryVerdict int

const (
	// RetryStale is of an attempt that is not the activity's current one: it says nothing.
	RetryStale RetryVerdict = iota
	// RetryNext is of one whose next attempt is the current one, and was sent, or refused.
	RetryNext
	// RetryOver is of the current attempt where no next follows: the activity has failed.
	RetryOver
)
