package history

import "time"

// CancelDetails contains the fields of an event of a call with WaitForCancellation. It is nil in other events.
type CancelDetails struct {
	// WaitForCancellation is set on an event that schedules work. If the work is cancelled, its future settles when the
	// work has ended, not when the cancellation is requested.
	WaitForCancellation bool `json:"wait,omitempty"`
	// Outcome is set on an event that ends cancelled work. It is one of the Outcome constants. If it is empty, the kind
	// of the event determines the outcome (see CancelOutcomeOf).
	Outcome string `json:"ended,omitempty"`
	// SeenAt is the time at which the worker of the activity observed the cancellation.
	SeenAt *time.Time `json:"seenAt,omitempty"`
}

// The outcomes of cancelled work whose end was awaited. Histories store these strings, so they never change.
const (
	// OutcomeReturned means that the code of the activity returned, with a result or an error, and no attempt was
	// abandoned.
	OutcomeReturned = "returned"
	// OutcomeAbandoned means that the code of the activity did not return within its grace period or its timeout, and
	// the worker abandoned it.
	OutcomeAbandoned = "given_up"
	// OutcomeNeverStarted means that no code of the activity has run or will run.
	OutcomeNeverStarted = "never_began"
	// OutcomeWorkerLost means that the worker died or stopped before it reported an end, and the activity was not
	// started again.
	OutcomeWorkerLost = "worker_gone"
	// OutcomeTimedOut means that the schedule-to-close timeout of the activity expired before an end was reported.
	OutcomeTimedOut = "timed_out"
	// OutcomeEnded means that the sub-orchestration has ended.
	OutcomeEnded = "over"
	// OutcomeNotFound means that the sub-orchestration does not exist because another instance has its ID.
	OutcomeNotFound = "not_found"
)

// CancelOutcomeOf returns the outcome of cancelled work, from the event that ended it.
func CancelOutcomeOf(e *Event) string {
	switch {
	case e.Cancel != nil && e.Cancel.Outcome != "":
		return e.Cancel.Outcome
	case e.Kind == OutputFailed:
		return OutcomeNeverStarted // the work could not be sent
	case e.Kind == SubOrchestrationCancelFailed && e.Error != nil && e.Error.Type == TypeNotFound:
		return OutcomeNotFound
	case e.Kind == SubOrchestrationCompleted, e.Kind == SubOrchestrationFailed, e.Kind == SubOrchestrationCancelFailed:
		return OutcomeEnded
	case e.Kind == ActivityFailed && e.Attempt == 0: // an outcome from a worker has an attempt
		return OutcomeTimedOut
	default:
		return OutcomeReturned
	}
}
