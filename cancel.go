package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// CancelReason is the reason for a cancellation. Histories store these strings, so they never change.
type CancelReason string

// The reasons that the history records.
const (
	// ReasonRequested means that Future.Cancel or a client requested the cancellation, with the message of the
	// CancelledError.
	ReasonRequested CancelReason = "requested"
	// ReasonSelectLoser means that another future of a Select settled first.
	ReasonSelectLoser CancelReason = "select_loser"
	// ReasonScopeEnded means that the scope of the work has ended, for example because its CancelFunc was called.
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

// These reasons occur only in the context of an activity. They mean that the worker must stop running the activity.
const (
	// ReasonLockLost means that another worker may run the activity now.
	ReasonLockLost CancelReason = "lock_lost"
	// ReasonInvocationDeadline means that the invocation of the worker ends soon.
	ReasonInvocationDeadline CancelReason = "deadline"
	// ReasonShutdown means that the worker is shutting down.
	ReasonShutdown CancelReason = "shutdown"
)

// CancelOutcome describes how cancelled work ended, if the call used [WaitForCancellation]. Histories store these
// strings, so they never change.
type CancelOutcome string

// The values of CancelOutcome.
const (
	// OutcomeReturned means that the code of the activity returned, before or after the cancel, and no attempt was
	// abandoned. If the code returned a result, the history contains the result.
	OutcomeReturned CancelOutcome = history.OutcomeReturned
	// OutcomeAbandoned means that the activity was abandoned, because its code did not return within the worker's grace
	// period or within a timeout (start-to-close or heartbeat). The code may still run. The value does not change if a
	// later attempt returns.
	OutcomeAbandoned CancelOutcome = history.OutcomeAbandoned
	// OutcomeNeverStarted means that no code of the activity or sub-orchestration has run or will run.
	OutcomeNeverStarted CancelOutcome = history.OutcomeNeverStarted
	// OutcomeWorkerLost means that the worker died or stopped before it reported an end, and the activity was not
	// started again. Its code may have run partly or completely.
	OutcomeWorkerLost CancelOutcome = history.OutcomeWorkerLost
	// OutcomeTimedOut means that the schedule-to-close timeout of the activity expired before an end was reported.
	OutcomeTimedOut CancelOutcome = history.OutcomeTimedOut
	// OutcomeEnded means that the sub-orchestration has ended, including the work that its code waited for.
	OutcomeEnded CancelOutcome = history.OutcomeEnded
	// OutcomeNotFound means that the sub-orchestration does not exist because another instance has its ID.
	OutcomeNotFound CancelOutcome = history.OutcomeNotFound
)

// CancelledError is the error of cancelled work. The future of the work fails with it, and context.Cause returns it in
// an activity. errors.Is finds context.DeadlineExceeded in it if the reason is ReasonTimeout, and context.Canceled
// otherwise.
type CancelledError struct {
	Reason CancelReason
	// Message is the message of the cancel request. It may be empty.
	Message string
	// CancelOutcome describes how the work ended, if the call used [WaitForCancellation]. Otherwise it is empty.
	CancelOutcome CancelOutcome
	// scope is the error of the ended scope that cancelled the work. It is nil if this error is the error of a scope,
	// or if no scope cancelled the work.
	scope error
}

// Error returns a text with the reason, the message, and the outcome if it is known.
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
	switch {
	case e == nil: // fmt.Errorf can wrap a nil pointer together with other errors
		return false
	case e.Reason == ReasonTimeout:
		return target == context.DeadlineExceeded
	default:
		return target == context.Canceled
	}
}

// ErrorType returns the type name that failures store for the error.
func (e *CancelledError) ErrorType() string { return history.TypeCancelled }

type waitForCancellation struct{}

func (waitForCancellation) applyToActivityCall(c *replay.ActivityCall) { c.WaitCancel = true }

func (waitForCancellation) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.WaitCancel = true }

// WaitForCancellation delays the result of a cancelled activity or sub-orchestration until the work has ended. The
// activity has then returned, was abandoned after its grace period, or never started. The sub-orchestration has then
// ended, including its compensation. The future fails with a *CancelledError whose CancelOutcome describes the end. A
// result that arrives after the cancel does not make the future succeed.
//
//	_, err = perdure.CallActivity(ctx, charge, order, perdure.WaitForCancellation()).Await(ctx)
//
// A wait through a cancelled scope still returns the scope's error immediately. To wait for the end, use a context of
// [WithoutCancel]. [Compensate] does this for the calls of its scope. When the orchestration ends, it does not wait.
//
// The future settles late in these cases:
//
//   - The worker dies. The future settles after the worker's lease expires, 30 seconds by default. If the worker dies
//     in the first 3 seconds of the activity, before it observed the cancel and in one of the first two deliveries, the
//     future settles after the function's timeout.
//   - No worker receives the activity. The future never settles unless the call has [WithScheduleToCloseTimeout]
//     (OutcomeTimedOut).
//   - The sub-orchestration is blocked. The future settles when the sub-orchestration has ended.
//
// The option is recorded with the call. It prevents two copies of a message from running concurrently. For each
// activity, the worker makes one read and two writes, one more write every 15 seconds, and one write for a cancel. All
// workers must run a release that supports it. [StartOrchestration] ignores the option.
func WaitForCancellation() CallOption { return waitForCancellation{} }
