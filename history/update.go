package history

// UpdateIDPrefix is the prefix of update IDs in the list of external event IDs that the next execution receives.
const UpdateIDPrefix = "perdure:update:"

// The reasons for the rejection of an update, in the Reason of UpdateRejected. Histories store these strings, so they
// never change.
const (
	// RejectedByValidator means that the validator returned an error or panicked.
	RejectedByValidator = "refused"
	// RejectedNoHandler means that the code has not set a handler for the update.
	RejectedNoHandler = "unknown_update"
	// RejectedInput means that the input cannot be decoded into the handler's type.
	RejectedInput = "bad_input"
	// RejectedNotReadOnly means that the validator scheduled work, waited or made another decision.
	RejectedNotReadOnly = "misused"
	// RejectedLimit means that the execution runs the maximum number of handlers.
	RejectedLimit = "too_many"
)

// The failure types of an update that an orchestration sent to another instance, in UpdateAnswered. The failure of the
// update is the Cause.
const (
	// TypeUpdateFailed means that the handler returned an error.
	TypeUpdateFailed = "update_failed"
	// TypeUpdateRejected means that the update was rejected. The Reason of the failure is one of the reasons above.
	TypeUpdateRejected = "update_rejected"
	// TypeUpdateAborted means that the update was accepted, and the execution ended before the handler returned.
	TypeUpdateAborted = "update_left"
	// TypeUpdateResultExpired means that the update was handled earlier and its result has expired.
	TypeUpdateResultExpired = "update_forgotten"
	// TypeUpdatePurged means that the instance that may have handled the update was purged.
	TypeUpdatePurged = "update_purged"
)

// IsAbortedUpdate reports whether the event is an UpdateCompleted whose handler had not returned when the execution
// ended. Reason is then the cancel reason of the outstanding work.
func (e *Event) IsAbortedUpdate() bool { return e.Kind == UpdateCompleted && e.Reason != "" }
