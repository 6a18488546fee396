package history

// ReasonInstanceDeleted is the reason for which what a deleted instance left outstanding is cancelled. Like all reasons
// it is part of the format.
const ReasonInstanceDeleted = "instance_deleted"

// TerminalReason returns the reason for which what is outstanding is cancelled when an execution ends with an event of
// that kind.
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
