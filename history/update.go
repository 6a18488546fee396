package history

// UpdateIDPrefix begins the ids of updates where they are carried to the next execution, among the ids of external
// events.
const UpdateIDPrefix = "perdure:update:"

// Why an update was rejected (UpdateRejected, in Reason). The words are part of the format.
const (
	// UpdateRefused: the validator of its handler returned an error, or panicked.
	UpdateRefused = "refused"
	// UpdateUnknown: the code has set no handler of its name, as far as it had come.
	UpdateUnknown = "unknown_update"
	// UpdateBadInput: its input does not fit what its handler takes.
	UpdateBadInput = "bad_input"
	// UpdateMisused: the validator scheduled, waited, or decided something else.
	UpdateMisused = "misused"
	// UpdateTooMany: as many handlers ran as an execution has at a time.
	UpdateTooMany = "too_many"
)

// Why an orchestration has no answer to an update that it has sent to another instance, beside the words above: the Type of the failure of
// UpdateAnswered, where the update's own is its Cause.
const (
	// UpdateFailed: its handler returned an error.
	UpdateFailed = "update_failed"
	// UpdateRejection: it was rejected; the Reason of the failure is one of the words above.
	UpdateRejection = "update_rejected"
	// UpdateLeft: it was accepted, and its execution ended before its handler returned.
	UpdateLeft = "update_left"
	// UpdateForgotten: it was taken long ago, and what came of it is not known any more.
	UpdateForgotten = "update_forgotten"
	// UpdatePurged: the instance that may have taken it is purged.
	UpdatePurged = "update_purged"
)

// IsLeft reports whether an UpdateCompleted says that the execution ended before the handler of its update returned:
// Reason is then that of all that was outstanding.
func (e *Event) IsLeft() bool { return e.Kind == UpdateCompleted && e.Reason != "" }
