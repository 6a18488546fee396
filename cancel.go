package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
)

// CancelReason says why something was cancelled. The strings are part of the format of histories: they never change.
type CancelReason string

// The reasons that history holds.
const (
	// ReasonRequested: Future.Cancel, or a request from outside; the message is that of the request.
	ReasonRequested CancelReason = "requested"
	// ReasonSelectLoser: another future of a Select was first.
	ReasonSelectLoser CancelReason = "select_loser"
	// ReasonDroppedFuture: the scope that it belonged to was left.
	ReasonDroppedFuture CancelReason = "dropped_future"
	// ReasonTimeout: the scope that it belonged to, or the attempt, ran out of time.
	ReasonTimeout CancelReason = "timeout"
	// The orchestration ended while it was outstanding.
	ReasonOrchestrationCompleted      CancelReason = "orchestration_terminal_completed"
	ReasonOrchestrationFailed         CancelReason = "orchestration_terminal_failed"
	ReasonOrchestrationCancelled      CancelReason = "orchestration_terminal_cancelled"
	ReasonOrchestrationTerminated     CancelReason = "orchestration_terminal_terminated"
	ReasonOrchestrationContinuedAsNew CancelReason = "orchestration_terminal_continued_as_new"
	// ReasonParentCancelled: the orchestration that called this one was cancelled.
	ReasonParentCancelled CancelReason = "parent_cancelled"
	// ReasonInstanceDeleted: the instance was deleted by force.
	ReasonInstanceDeleted CancelReason = history.ReasonInstanceDeleted
)

// The reasons that only an activity sees, in its context; its worker can go on with it no longer.
const (
	// ReasonLockLost: another worker may have the activity now.
	ReasonLockLost CancelReason = "lock_lost"
	// ReasonDeadline: the function's invocation is about to end.
	ReasonDeadline CancelReason = "deadline"
	// ReasonShutdown: the worker is being stopped.
	ReasonShutdown CancelReason = "shutdown"
)

// CancelledError says that something was cancelled: as the error of a future, and as context.Cause in an activity.
// errors.Is finds context.DeadlineExceeded in it when the reason is ReasonTimeout, else context.Canceled.
type CancelledError struct {
	Reason CancelReason
	// Message is the text of the one who cancelled; it may be empty.
	Message string
	// Ended is how it really ended, of a call that asked for that with [WaitForCancellation], once it is known. Else it is empty.
	Ended CancelEnd
	// scope is the error of the scope that it was cancelled with; nil where that was not so, or it is the very error.
	scope error
}

// Error implements error.
func (e *CancelledError) Error() string {
	why := string(e.Reason)
	if e.Ended != "" {
		why += ", " + string(e.Ended)
	}
	if e.Message == "" {
		return fmt.Sprintf("cancelled (%s)", why)
	}
	return fmt.Sprintf("cancelled (%s): %s", why, e.Message)
}

// Is makes it a context.DeadlineExceeded or context.Canceled.
func (e *CancelledError) Is(target error) bool {
	if e.Reason == ReasonTimeout {
		return target == context.DeadlineExceeded
	}
	return target == context.Canceled
}

// ErrorType names the error where it travels.
func (e *CancelledError) ErrorType() string { return history.TypeCancelled }
