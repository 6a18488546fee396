package perdure

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// CancelEnd is how something really ended that was cancelled, where the call of it asked for that with [WaitForCancellation]. The
// strings are part of the format of histories: they never change.
type CancelEnd string

// The ends.
const (
	// EndReturned: the code of the activity returned, with a result or an error, in time or after it was cancelled, and it is not tried
	// again, and none of its attempts, or deliveries, was given up. What it did is done; a result is in history.
	EndReturned CancelEnd = history.EndReturned
	// EndGivenUp: the code of the activity did not return within its worker's grace, or by the end of its own time (start-to-close, heartbeat),
	// and it is not waited for any longer. It may still run, whatever its later attempts have come to: one that was given up stays so.
	EndGivenUp CancelEnd = history.EndGivenUp
	// EndNeverBegan: no code of the activity or sub-orchestration has run, and none will.
	EndNeverBegan CancelEnd = history.EndNeverBegan
	// EndWorkerGone: the worker that had taken the activity died, or had to stop, before it reported an end, and it was not begun again. Its
	// code may have run, to whatever point.
	EndWorkerGone CancelEnd = history.EndWorkerGone
	// EndTimedOut: the activity's schedule-to-close time was over before an end was reported.
	EndTimedOut CancelEnd = history.EndTimedOut
	// EndOver: the sub-orchestration is over, and all that its own code waited for.
	EndOver CancelEnd = history.EndOver
	// EndNotFound: there is no such sub-orchestration: another instance has its id.
	EndNotFound CancelEnd = history.EndNotFound
)

type waitForCancellation struct{}

func (waitForCancellation) applyToActivityCall(c *replay.ActivityCall) { c.WaitCancel = true }

func (waitForCancellation) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.WaitCancel = true }

// WaitForCancellation has the future of an activity or sub-orchestration that is cancelled, by any side, settle when that has really
// ended, instead of at once: the activity has returned, was given up by its worker after its grace, or never began; the
// sub-orchestration is over, with all that it undoes. Its *CancelledError has the end (Ended). Whatever comes of it after the cancel
// was decided is no success.
//
// A wait through a scope that is over returns the error of the scope at once, as ever. To wait for the end, wait through
// [WithoutCancel]; [Compensate] does so by itself for the calls of its scope, before it undoes:
//
//	_, err = perdure.CallActivity(ctx, charge, order, perdure.WaitForCancellation()).Await(ctx)
//
// The wait takes as long as the end does. A worker that dies meanwhile is noticed when its lease is over, 30 seconds later by default; one that
// dies in the first three seconds of the activity, and has not seen the cancel, when the queue gives the message again: after the function's timeout.
// An activity that no worker takes from its queue never began, but nothing reports that: give it [WithScheduleToClose], which bounds the
// wait as well (EndTimedOut). A sub-orchestration that is blocked is not over. When the orchestration itself ends nothing waits, and
// what is outstanding is cancelled as ever.
//
// The option is recorded with the call, which keeps it when the code changes. It costs a worker a read and two writes for each
// activity that it runs, one of them of its result, one more every quarter of a minute, and one when it sees a cancel; and has two copies of a message not run beside each other. It needs workers of this release
// or a later one. [StartOrchestration] ignores it.
func WaitForCancellation() CallOption { return waitForCancellation{} }
