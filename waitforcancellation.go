package perdure

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// CancelOutcome is how cancelled work ended, if the call used [WaitForCancellation]. Histories store these strings, so
// they never change.
type CancelOutcome string

// The values of CancelOutcome.
const (
	// OutcomeReturned means that the code of the activity returned, before or after the cancel, and no attempt was
	// abandoned. Its work is done; the history has its result, if it returned one.
	OutcomeReturned CancelOutcome = history.OutcomeReturned
	// OutcomeAbandoned means that the activity was abandoned: its code did not return within the worker's grace period
	// or its own timeout (start-to-close or heartbeat). The code may still run. The value stays even if a later attempt
	// returns.
	OutcomeAbandoned CancelOutcome = history.OutcomeAbandoned
	// OutcomeNeverStarted means that no code of the activity or sub-orchestration has run or will run.
	OutcomeNeverStarted CancelOutcome = history.OutcomeNeverStarted
	// OutcomeWorkerLost means that the worker died or stopped before it reported an end, and the activity was not
	// started again. Its code may have run partly or completely.
	OutcomeWorkerLost CancelOutcome = history.OutcomeWorkerLost
	// OutcomeTimedOut means that the schedule-to-close time of the activity elapsed before an end was reported.
	OutcomeTimedOut CancelOutcome = history.OutcomeTimedOut
	// OutcomeEnded means that the sub-orchestration has ended, including the work that its own code waited for.
	OutcomeEnded CancelOutcome = history.OutcomeEnded
	// OutcomeNotFound means that the sub-orchestration does not exist: another instance has its ID.
	OutcomeNotFound CancelOutcome = history.OutcomeNotFound
)

type waitForCancellation struct{}

func (waitForCancellation) applyToActivityCall(c *replay.ActivityCall) { c.WaitCancel = true }

func (waitForCancellation) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.WaitCancel = true }

// WaitForCancellation delays the settling of a cancelled activity or sub-orchestration until it has really ended. The
// activity has then returned, was abandoned after its grace period, or never started. The sub-orchestration has then
// ended, including its compensation. The future has a *CancelledError whose CancelOutcome is the end. A result that
// arrives after the cancel is not a success.
//
//	_, err = perdure.CallActivity(ctx, charge, order, perdure.WaitForCancellation()).Await(ctx)
//
// A wait through a cancelled scope still returns the scope's error immediately. To wait for the end, use a context of
// [WithoutCancel]. [Compensate] does this for the calls of its scope. When the orchestration ends, it does not wait for
// outstanding work.
//
// The end of an activity is reported late in these cases:
//
//   - The worker dies: after its lease expires, 30 seconds by default. If it dies in the first 3 seconds of the
//     activity, before it saw the cancel: after the function's timeout.
//   - No worker receives the activity: never, unless the call has [WithScheduleToCloseTimeout] (OutcomeTimedOut).
//   - The sub-orchestration is blocked: when it has ended.
//
// The option is recorded with the call, so that a later change of the code does not affect it. It prevents two copies
// of a message from running concurrently. It costs the worker one read and two writes for each activity, one more write
// every 15 seconds, and one write for a cancel. All workers must run a release that supports it. [StartOrchestration]
// ignores the option.
func WaitForCancellation() CallOption { return waitForCancellation{} }
