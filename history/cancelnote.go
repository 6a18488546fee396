package history

import "time"

// CancelNote is what an event records of a cancel that is waited for. Events of anything else have none.
type CancelNote struct {
	// Wait is set on an event that schedules something: when that is cancelled, its future settles once it has really
	// ended.
	Wait bool `json:"wait,omitempty"`
	// Ended is set on an event that ends something, and is one of the EndXxx. Empty: the event's kind decides.
	Ended string `json:"ended,omitempty"`
	// SeenAt is when the worker of an activity saw that it is cancelled.
	SeenAt *time.Time `json:"seenAt,omitempty"`
}

// How something ended that was cancelled, and whose end was waited for. The strings are part of the format.
const (
	// EndReturned: the code of the activity returned, with a result or an error; it is not tried again, and no attempt
	// or delivery of it was given up.
	EndReturned = "returned"
	// EndGivenUp: the code of the activity did not return within its worker's grace, or by the end of its time, and its
	// worker stopped waiting for it.
	EndGivenUp = "given_up"
	// EndNeverBegan: no code of the activity has run, and none will.
	EndNeverBegan = "never_began"
	// EndWorkerGone: the worker that had the activity died or had to stop before it reported an end, and the activity
	// was not begun again.
	EndWorkerGone = "worker_gone"
	// EndTimedOut: the schedule-to-close time of the activity was over before an end was reported.
	EndTimedOut = "timed_out"
	// EndOver: the sub-orchestration is over.
	EndOver = "over"
	// EndNotFound: there is no such sub-orchestration: another instance has its id.
	EndNotFound = "not_found"
)

// EndOf returns how something that was cancelled ended, by the event that ends it.
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
