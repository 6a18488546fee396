package history

// RuntimeStatus is the status of an instance.
type RuntimeStatus string

// The statuses of an instance.
const (
	// StatusPending means that the instance was started and no turn has run.
	StatusPending RuntimeStatus = "Pending"
	// StatusRunning means that at least one turn has run. The instance usually waits for an activity, a timer or an
	// event.
	StatusRunning RuntimeStatus = "Running"
	// StatusCompleted means that the instance ended with an output.
	StatusCompleted RuntimeStatus = "Completed"
	// StatusFailed means that the instance ended with an error.
	StatusFailed RuntimeStatus = "Failed"
	// StatusTerminated means that a client ended the instance without running its code.
	StatusTerminated RuntimeStatus = "Terminated"
	// StatusCancelling means that a cancellation was requested and the code has not ended yet.
	StatusCancelling RuntimeStatus = "Cancelling"
	// StatusCancelled means that the instance ended because of a cancellation.
	StatusCancelled RuntimeStatus = "Cancelled"
	// StatusBlocked means that no deployed build can process the history of the instance. Its inputs are parked. The
	// instance continues when a suitable build is deployed.
	StatusBlocked RuntimeStatus = "Blocked"
	// StatusPaused means that the instance was paused. Its code does not run, and its inputs are parked, until it is
	// resumed.
	StatusPaused RuntimeStatus = "Paused"
	// StatusDeleting means that the instance has ended and is being deleted. Parts of its history may be missing. Its
	// ID is free after the deletion.
	StatusDeleting RuntimeStatus = "Deleting"
)

// Terminal reports whether the instance has ended.
func (s RuntimeStatus) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled || s == StatusTerminated ||
		s == StatusDeleting
}

// StatusAfter returns the status of an instance whose execution ended with an event of the kind. ok is false for other
// events.
func StatusAfter(k Kind) (s RuntimeStatus, ok bool) {
	switch k {
	case OrchestrationCompleted:
		return StatusCompleted, true
	case OrchestrationFailed:
		return StatusFailed, true
	case OrchestrationCancelled:
		return StatusCancelled, true
	case OrchestrationTerminated:
		return StatusTerminated, true
	default:
		return "", false
	}
}
