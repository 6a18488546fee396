package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
)

// CancelReason is the reason for a cancellation. Histories store these strings, so they never change.
type CancelReason string

// The reasons that the history records.
const (
	// ReasonRequested means that Future.Cancel or a client requested the cancellation. The message is that of the
	// request.
	ReasonRequested CancelReason = "requested"
	// ReasonSelectLoser means that another future of a Select settled first.
	ReasonSelectLoser CancelReason = "select_loser"
	// ReasonScopeEnded means that the scope of the work was ended, for example by its CancelFunc.
	ReasonScopeEnded CancelReason = "dropped_future"
	// ReasonTimeout means that the scope or the attempt timed out.
	ReasonTimeout CancelReason = "timeout"
	// The following reasons mean that the orchestration ended while the work was outstanding.
	ReasonOrchestrationCompleted      CancelReason = "orchestration_terminal_completed"
	ReasonOrchestrationFailed         CancelReason = "orchestration_terminal_failed"
	ReasonOrchestrationCancelled      CancelReason = "orchestration_terminal_cancelled"
	ReasonOrchestrationTerminated     CancelReason = "orchestration_terminal_terminated"
	ReasonOrchestrationContinuedAsNew CancelReason = "orchestration_terminal_continued_as_new"
	// ReasonParentCancelled means that the parent orchestration was cancelled.
	ReasonParentCancelled CancelReason = "parent_cancelled"
	// ReasonInstanceDeleted means that the instance was purged with force.
	ReasonInstanceDeleted CancelReason = history.ReasonInstanceDeleted
)

// Reasons that only an activity's context has. The worker can no longer run the activity.
const (
	// ReasonLockLost means that another worker may run the activity now.
	ReasonLockLost CancelReason = "lock_lost"
	// ReasonInvocationDeadline means that the invocation of the worker ends soon.
	ReasonInvocationDeadline CancelReason = "deadline"
	// ReasonShutdown means that the worker is shutting down.
	ReasonShutdown CancelReason = "shutdown"
)

// CancelledError is the error of cancelled work. Futures have it, and context.Cause returns it in an activity.
// errors.Is finds context.DeadlineExceeded in it if the reason is ReasonTimeout, and context.Canceled otherwise.
type CancelledError struct {
	Reason CancelReason
	// Message is the message of the cancel request. It may be empty.
	Message string
	// CancelOutcome is how the work ended, if the call used [WaitForCancellation]. Otherwise it is empty.
	CancelOutcome CancelOutcome
	// scope is the error of the scope that it was cancelled with; nil where that was not so, or it is the very error.
	scope error
}

// Error returns a message with the reason, the end if it is known, and the message.
func (e *CancelledError) Error() string {
	why := string(e.Reason)
	if e.CancelOutcome != "" {
		why += ", " + string(e.CancelOutcome)
	}
	if e.Message == "" {
		return fmt.Sprintf("cancelled (%s)", why)
	}
	return fmt.Sprintf("cancelled (%s): %s", why, e.Message)
}

// Is reports whether target is context.DeadlineExceeded (ReasonTimeout) or context.Canceled (other reasons).
func (e *CancelledError) Is(target error) bool {
	if e.Reason == ReasonTimeout {
		return target == context.DeadlineExceeded
	}
	return target == context.Canceled
}

// ErrorType returns the type name that failures store for the error.
func (e *CancelledError) ErrorType() string { return history.TypeCancelled }
