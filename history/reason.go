package history

// ReasonInstanceDeleted is the cancel reason for the outstanding work of an instance that was deleted. Histories store
// it, so it never changes.
const ReasonInstanceDeleted = "instance_deleted"

// TerminalReason returns the cancel reason for outstanding work when an execution ends with an event of the kind.
func TerminalReason(end Kind) string {
	switch end {
	case OrchestrationCompleted:
		return "orchestration_terminal_completed"
	case OrchestrationCancelled:
		return "orchestration_terminal_cancelled"
	case OrchestrationTerminated:
		return "orchestration_terminal_terminated"
	case OrchestrationContinuedAsNew:
		return "orchestration_terminal_continued_as_new"
	default:
		return "orchestration_terminal_failed"
	}
}
