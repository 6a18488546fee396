package activities

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// stopState describes why and when a running activity was stopped. Its context has ended, and the worker waits for the
// code until abandonAt. The supervisor's lock guards it while the code runs.
type stopState struct {
	// reason is the cause of the context's end, at the time at. It is nil if the activity was not stopped.
	reason        *perdure.CancelledError
	at, abandonAt time.Time
	// lockLost is true if another worker may have the work item.
	lockLost bool
	// deleted is true if the instance is deleted, so that nothing may be written for it.
	deleted bool
	// executionEnded is true if the activity is cancelled because its execution has ended. Nothing waits for its end.
	executionEnded bool
}

// isByWorker reports whether the worker stopped the activity for its own reason, not for a cancel.
func (s *stopState) isByWorker() bool { return s.reason != nil && isWorkerReason(s.reason.Reason) }

func (s *stopState) abandonBy(at time.Time) { s.abandonAt = intake.Earlier(s.abandonAt, at) }

func (s *stopState) setCancelled(c *provider.CancelInfo) {
	s.deleted = c.Deleted
	if s.reason == nil {
		s.executionEnded = c.ExecutionEnded
	}
}

// isWorkerReason reports whether a reason concerns only the worker, so that another worker can continue the activity.
func isWorkerReason(r perdure.CancelReason) bool {
	return r == perdure.ReasonLockLost || r == perdure.ReasonInvocationDeadline || r == perdure.ReasonShutdown
}

// isEndAwaited reports whether the call waits for the end of the activity if it is cancelled.
func (t *task) isEndAwaited() bool {
	return t.item.WaitForCancellation && !t.stop.deleted && !t.stop.executionEnded
}

// stop ends the context of a running activity and starts its grace period. Only the first reason counts. A later one
// can shorten the grace period.
func (s *supervisor) stop(t *task, reason *perdure.CancelledError, now time.Time) {
	state := &t.stop
	if state.reason == nil {
		state.reason, state.at = reason, now
		state.abandonAt = now.Add(s.options.gracePeriod())
		if t.item.WaitForCancellation && t.item.ScheduleToCloseDeadline != nil {
			state.abandonBy(*t.item.ScheduleToCloseDeadline) // the end is sent before the timeout settles the activity
		}
		t.cancel(reason)
	}
	if reason.Reason == perdure.ReasonInvocationDeadline {
		state.abandonBy(t.batch.abandonAt)
	}
}

// loseLock stops an activity that another worker may have now, or soon.
func (s *supervisor) loseLock(t *task, now time.Time) {
	t.stop.lockLost = true
	s.stop(t, &perdure.CancelledError{
		Reason:  perdure.ReasonLockLost,
		Message: "lock lost; another worker may run the activity",
	}, now)
}
