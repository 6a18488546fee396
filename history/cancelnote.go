package history

import "time"

// CancelNote is the part of an event that belongs to a call with WaitForCancellation. Other events have none.
type CancelNote struct {
	// Wait is set on an event that schedules work. If the work is cancelled, its future settles when the work has
	// really ended.
	Wait bool `json:"wait,omitempty"`
	// Ended is set on an event that ends cancelled work. It is one of the End constants. If it is empty, the kind of
	// the event determines the end (see EndOf).
	Ended string `json:"ended,omitempty"`
	// SeenAt is when the worker of the activity observed the cancellation.
	SeenAt *time.Time `json:"seenAt,omitempty"`
}

// How cancelled work ended whose end was awaited. Histories store these strings, so they never change.
const (
	// EndReturned means that the code of the activity returned, with a result or an error, and no attempt was
	// abandoned.
	EndReturned = "returned"
	// EndGivenUp means that the code of the activity did not return within its grace period or its timeout, and the
	// worker abandoned it.
	EndGivenUp = "given_up"
	// EndNeverBegan means that no code of the activity has run or will run.
	EndNeverBegan = "never_began"
	// EndWorkerGone means that the worker died or stopped before it reported an end, and the activity was not started
	// again.
	EndWorkerGone = "worker_gone"
	// EndTimedOut means that the schedule-to-close time of the activity elapsed before an end was reported.
	EndTimedOut = "timed_out"
	// EndOver means that the sub-orchestration has ended.
	EndOver = "over"
	// EndNotFound means that the sub-orchestration does not exist: another instance has its ID.
	EndNotFound = "not_found"
)

// EndOf returns how cancelled work ended, from the event that ended it.
func EndOf(e *Event) string {
	switch {
	case e.Cancel != nil && e.Cancel.Ended != "":
		return e.Cancel.Ended
	case e.Kind == OutputFailed:
		return EndNeverBegan // it could not be sent
	case e.Kind == SubOrchestrationCancelFailed && e.Error != nil && e.Error.Type == TypeNotFound:
		return EndNotFound
	case e.Kind == SubOrchestrationCompleted, e.Kind == SubOrchestrationFailed, e.Kind == SubOrchestrationCancelFailed:
		return EndOver
	case e.Kind == ActivityFailed && e.Attempt == 0: // an outcome from a worker has an attempt
		return EndTimedOut
	default:
		return EndReturned
	}
}
