package history

import "strings"

// ReasonInstanceDeleted is why what a deleted instance left outstanding is cancelled. Like all reasons it is part of the format.
const ReasonInstanceDeleted = "instance_deleted"

// terminalReason is what the reasons begin with of what an execution cancels that ends.
const terminalReason = "orchestration_terminal_"

// EndsExecution reports whether what was cancelled for a reason was so since its execution ended, or its instance was deleted: then
// nobody waits for it.
func EndsExecution(reason string) bool {
	return reason == ReasonInstanceDeleted || strings.HasPrefix(reason, terminalReason)
}

// TerminalReason is why what is outstanding is cancelled when an execution ends with an event of that kind.
func TerminalReason(end Kind) string {
	switch end {
	case OrchestrationCompleted:
		return terminalReason + "completed"
	case OrchestrationCancelled:
		return terminalReason + "cancelled"
	case OrchestrationTerminated:
		return terminalReason + "terminated"
	case OrchestrationContinuedAsNew:
		return terminalReason + "continued_as_new"
	default:
		return terminalReason + "failed"
	}
}
