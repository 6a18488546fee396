// Package outcome builds the outcomes that a worker sends for the attempts of activities.
package outcome

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Of returns the outcome of an attempt that failed with f. If f is nil, the attempt succeeded, and the caller adds the
// result.
func Of(it *provider.LockedWorkItem, f *history.Failure) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: f}
}

// Cancelled returns the outcome of a cancelled activity whose code has no outcome.
func Cancelled(it *provider.LockedWorkItem, reason *perdure.CancelledError) *provider.ActivityOutcome {
	return Of(it, &history.Failure{
		Type: history.TypeCancelled, Reason: string(reason.Reason), Message: reason.Message,
	})
}

// Interrupted returns the outcome of an AtMostOnce attempt that may have started and is not started again (R32). cause
// is the error that its code returned when it was stopped, or nil.
func Interrupted(it *provider.LockedWorkItem, cause *history.Failure) *provider.ActivityOutcome {
	return Of(it, &history.Failure{
		Type: history.TypeInterrupted, Cause: cause, Message: fmt.Sprintf("attempt %d of activity %q may have "+
			"started, and its worker died or stopped before the outcome was stored. "+
			"AtMostOnce does not run it again; check its side effects", it.Attempt, it.Name),
	})
}

// Pending returns the outcome of an activity that returned perdure.ErrPending, without its timeouts.
func Pending(it *provider.LockedWorkItem) *provider.ActivityOutcome {
	return PendingAs(it, &provider.PendingAttempt{
		Name: it.Name, Segment: it.Segment, HeartbeatMs: it.HeartbeatMs, Retry: it.Retry,
		ScheduleToCloseDeadline: it.ScheduleToCloseDeadline, WaitForCancellation: it.WaitForCancellation,
	})
}

// PendingAs returns the outcome of an attempt that is pending.
func PendingAs(it *provider.LockedWorkItem, p *provider.PendingAttempt) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Pending: p}
}

// WithRun adds the run to the failure of an activity with a retry policy. The orchestrator uses the run to distinguish
// a repeated failure from a failure of another run of the same attempt. A stored outcome already has its run. o may be
// nil.
func WithRun(it *provider.LockedWorkItem, o *provider.ActivityOutcome) *provider.ActivityOutcome {
	if o == nil || o.Error == nil || it.Retry == nil || o.Run != "" {
		return o
	}
	n := *o
	n.Run = fmt.Sprintf("%s.%d", it.Record.ID, it.Record.ReceiveCount)
	n.Segment = it.Segment
	return &n
}

// Poison returns the failure of an activity that has crashed its process in a number of deliveries. queue is its work
// queue.
func Poison(it *provider.LockedWorkItem, crashCount int, queue string) *history.Failure {
	return &history.Failure{Type: history.TypePoison, NonRetryable: true, Message: fmt.Sprintf(
		"activity %q started and did not end in %d deliveries, and ran alone in all but one of them: it crashed the "+
			"process (out of memory, os.Exit, a fatal error). See the worker's log. "+
			"The work item is in the dead-letter queue of queue %q", it.Name, crashCount, queue)}
}

const typeExclusivePending = "ExclusivePendingError"

// ExclusivePending returns the failure of an activity with an exclusive key that returned perdure.ErrPending. Deleting
// its record would start the next activity of the key while the token holder continues.
func ExclusivePending(it *provider.LockedWorkItem) *history.Failure {
	return &history.Failure{Type: typeExclusivePending, NonRetryable: true, Message: "activity " + it.Name +
		" returned ErrPending, which activities with an exclusive key do not support; " +
		"call it without the key, or send the token from another activity"}
}

// Stalled returns the failure of an attempt after n invocations that ended without a new heartbeat.
func Stalled(it *provider.LockedWorkItem, n int) *history.Failure {
	return &history.Failure{Type: history.TypeTimeout, Message: fmt.Sprintf(
		"activity %q: it exceeded the time of its invocation %d times in a row without a new "+
			"heartbeat; increase the function timeout, use smaller steps, or continue from heartbeat details",
		it.Name, n)}
}
