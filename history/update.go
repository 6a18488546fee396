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

// IsLeft reports whether an UpdateCompleted says that the execution ended before the handler of its update returned:
// Reason is then that of all that was outstanding.
func (e *Event) IsLeft() bool { return e.Kind == UpdateCompleted && e.Reason != "" }
