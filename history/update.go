package history

// UpdateIDPrefix is the prefix of update IDs that are passed to the next execution among the IDs of external events.
const UpdateIDPrefix = "perdure:update:"

// The reasons for the rejection of an update, in the Reason of UpdateRejected. Histories store these strings, so they
// never change.
const (
	// UpdateRefused means that the validator returned an error or panicked.
	UpdateRefused = "refused"
	// UpdateUnknown means that the code has set no handler for the update yet.
	UpdateUnknown = "unknown_update"
	// UpdateBadInput means that the input cannot be decoded into the handler's type.
	UpdateBadInput = "bad_input"
	// UpdateMisused means that the validator scheduled work, waited or made another decision.
	UpdateMisused = "misused"
	// UpdateTooMany means that the execution runs the maximum number of handlers.
	UpdateTooMany = "too_many"
)

// The failure types of an update that an orchestration sent to another instance, in UpdateAnswered. The failure of the
// update itself is the Cause.
const (
	// UpdateFailed means that the handler returned an error.
	UpdateFailed = "update_failed"
	// UpdateRejection means that the update was rejected. The Reason of the failure is one of the reasons above.
	UpdateRejection = "update_rejected"
	// UpdateLeft means that the update was accepted, and the execution ended before the handler returned.
	UpdateLeft = "update_left"
	// UpdateForgotten means that the update was handled so long ago that its result is no longer stored.
	UpdateForgotten = "update_forgotten"
	// UpdatePurged means that the instance that may have handled the update was purged.
	UpdatePurged = "update_purged"
)

// IsLeft reports whether the event is an UpdateCompleted because the execution ended before the handler returned.
// Reason is then the cancel reason of the outstanding work.
func (e *Event) IsLeft() bool { return e.Kind == UpdateCompleted && e.Reason != "" }
