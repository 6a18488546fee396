package history

// RuntimeStatus is where an instance is in its life.
type RuntimeStatus string

// The statuses of an instance.
const (
	// StatusPending: started, and no turn has run.
	StatusPending RuntimeStatus = "Pending"
	// StatusRunning: at least one turn has run; usually it waits for something.
	StatusRunning RuntimeStatus = "Running"
	// StatusCompleted: ended with an output.
	StatusCompleted RuntimeStatus = "Completed"
	// StatusFailed: ended with an error.
	StatusFailed RuntimeStatus = "Failed"
	// StatusTerminated: ended from outside, without running its code.
	StatusTerminated RuntimeStatus = "Terminated"
	// StatusCancelling: asked to end, and its code is unwinding.
	StatusCancelling RuntimeStatus = "Cancelling"
	// StatusCancelled: ended because it was asked to.
	StatusCancelled RuntimeStatus = "Cancelled"
	// StatusBlocked: its code cannot go on with its history, or is in no deployed build. What arrives is kept. The
	// instance goes on by itself once a build is deployed whose code can.
	StatusBlocked RuntimeStatus = "Blocked"
	// StatusPaused: somebody has paused it. Its code is not run and what arrives is kept, until it is resumed (R25).
	StatusPaused RuntimeStatus = "Paused"
	// StatusDeleting: over, and being deleted. Parts of its history may be gone; its id is free when the deletion is
	// finished.
	StatusDeleting RuntimeStatus = "Deleting"
)

// Terminal reports whether the instance is over.
func (s RuntimeStatus) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled || s == StatusTerminated || s == StatusDeleting
}

// StatusAfter returns the status of an instance whose execution ended with an event of this kind; ok is false for
// events that end nothing.
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
