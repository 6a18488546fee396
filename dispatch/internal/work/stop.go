package work

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// stopping is why and when an activity is stopped: its context ends, and it is waited for until giveUpAt. The manager's lock guards it
// while the activity runs.
type stopping struct {
	// why is what the context was ended with, at the time at. Nil: it was not.
	why          *perdure.CancelledError
	at, giveUpAt time.Time
	// lost: another worker may have the activity.
	lost bool
	// deleted: its instance is deleted, and nothing may be left of it.
	deleted bool
	// unwanted: it is cancelled since its execution has ended, so that nothing waits for its end.
	unwanted bool
}

// beginStop ends the context of a running task and begins its grace. The first reason stays; a later one can shorten the grace.
func (t *task) beginStop(why *perdure.CancelledError, now time.Time) {
	s := &t.stop
	if s.why == nil {
		s.why, s.at = why, now
		s.giveUpAt = now.Add(t.batch.worker.options.grace())
		if t.item.WaitForCancellation && t.item.ScheduleToCloseDeadline != nil { // its end is sent before its schedule-to-close time says that it is over
			s.giveUpBy(*t.item.ScheduleToCloseDeadline)
		}
		t.cancel(why)
	}
	if why.Reason == perdure.ReasonInvocationDeadline { // a later reason may shorten the grace
		s.giveUpBy(t.batch.lastAt)
	}
}

// lose stops a task that another worker may have by now, or soon.
func (t *task) lose(now time.Time) {
	t.stop.lost = true
	t.beginStop(&perdure.CancelledError{
		Reason:  perdure.ReasonLockLost,
		Message: "lock lost; another worker may run the activity",
	}, now)
}

// isOfWorker reports whether an activity is stopped for a reason that concerns its worker alone.
func (s *stopping) isOfWorker() bool { return s.why != nil && onlyOfWorkers(s.why.Reason) }

// giveUpBy shortens the grace.
func (s *stopping) giveUpBy(at time.Time) { s.giveUpAt = intake.Earlier(s.giveUpAt, at) }

// isCancelled notes that an activity is cancelled, of whose instance or execution nothing may be left.
func (s *stopping) isCancelled(c *provider.CancelInfo) {
	s.deleted = c.Deleted
	if s.why == nil {
		s.unwanted = c.ExecutionEnded
	}
}

// isDeleted notes that the instance of an activity is deleted.
func (s *stopping) isDeleted() { s.deleted = true }

// isWaitedFor reports whether something waits for the end of an activity that is cancelled.
func (t *task) isWaitedFor() bool {
	return t.item.WaitForCancellation && !t.stop.deleted && !t.stop.unwanted
}
