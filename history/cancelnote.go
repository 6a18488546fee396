package history

import "time"

// CancelNote is what an event says of a cancel that is waited for. Of what was scheduled without that no event has one.
type CancelNote struct {
	// Wait, where something is scheduled: when it is cancelled its future settles once it has really ended.
	Wait bool `json:"wait,omitempty"`
	// Ended, where something ended: how, one of the EndXxx. Empty: as the event's kind says.
	Ended string `json:"ended,omitempty"`
	// SeenAt is when the worker of an activity saw that it is cancelled.
	SeenAt *time.Time `json:"seenAt,omitempty"`
}

// How something ended that was cancelled, and whose end was waited for. The strings are part of the format.
const (
	// EndReturned: the code of the activity returned, with a result or an error, and it is not tried again.
	EndReturned = "returned"
	// EndGivenUp: the code of the activity did not return within its worker's grace, or by the end of its time, and was not waited for any longer.
	EndGivenUp = "given_up"
	// EndNeverBegan: no code of the activity has run, and none will.
	EndNeverBegan = "never_began"
	// EndWorkerGone: the worker that had taken the activity died or had to stop before it told of an end, and it was not begun again.
	EndWorkerGone = "worker_gone"
	// EndTimedOut: the schedule-to-close time of the activity was over before anybody told of an end.
	EndTimedOut = "timed_out"
	// EndOver: the sub-orchestration is over.
	EndOver = "over"
	// EndNotFound: there is no such sub-orchestration: another instance has its id.
	EndNotFound = "not_found"
)

// EndOf is how something ended that was cancelled, as the event says that ends it.
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
	case e.Kind == ActivityFailed && e.Attempt == 0: // what its worker tells has one
		return EndTimedOut
	default:
		return EndReturned
	}
}
