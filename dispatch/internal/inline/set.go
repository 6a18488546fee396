package inline

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// activities are the inline activities of a session.
type activities struct {
	all list // the activities whose phase is not over
	// detached have ended for the execution, and their code may still run.
	detached []*activity
	reports  reports
}

const (
	// maxRunning is the number of activities of a session that run concurrently.
	maxRunning = 100
	// stopGrace is the time for which the session waits for code after its context has ended.
	stopGrace = 250 * time.Millisecond
	// maxOutcomeBytes is the maximum size of the outcomes that are committed with a turn, except for the first one.
	maxOutcomeBytes = 1 << 20
)

func (s *activities) any() bool { return len(s.all) > 0 }

// add adds an activity that starts when there is capacity.
func (s *activities) add(a *activity) {
	a.phase = waiting
	s.all = append(s.all, a)
}

// start starts waiting activities, up to the capacity. until is the time at which each must have ended.
func (s *activities) start(ctx context.Context, until time.Time) {
	s.reports.open()
	capacity := maxRunning - s.all.count(running)
	for _, a := range s.all {
		if capacity == 0 {
			return
		}
		if a.phase != waiting {
			continue
		}
		capacity--
		within, cancel := context.WithCancelCause(body.Until(ctx, until))
		a.phase, a.until, a.cancel, a.notify = running, until, cancel, s.reports.notify
		go a.run(within, s.reports.add)
	}
}

// update applies the reported ends, and stops activities that run too long.
func (s *activities) update(now time.Time) {
	reported, ends := s.reports.take()
	for i, a := range reported {
		s.ended(a, ends[i])
	}
	for _, a := range s.all {
		if a.phase == running && !now.Before(a.until) {
			s.release(a, now)
		}
	}
}

// ended applies the end of an activity. The end of an activity that was stopped before has no effect.
func (s *activities) ended(a *activity, e end) {
	if a.phase != running {
		a.awaitUntil = time.Time{}
		return
	}
	a.cancel(nil)
	a.end = e
	if a.phase = done; e.outcome == nil {
		a.phase = released
	}
}

// release stops a running activity, which continues in its queue.
func (s *activities) release(a *activity, now time.Time) {
	a.phase, a.awaitUntil = released, now.Add(stopGrace)
	a.end = a.nextAttempt()
	a.cancel(errStopped)
}

// stop makes running and waiting activities continue in their queues. The next commit, or Runner.Send, sends them.
func (s *activities) stop(now time.Time, which func(*activity) bool) {
	for _, a := range s.all {
		switch {
		case !which(a):
		case a.phase == waiting:
			a.phase = released
		case a.phase == running:
			s.release(a, now)
		}
	}
}

// delayReleased makes released activities due no earlier than a time.
func (s *activities) delayReleased(until time.Time) {
	for _, a := range s.all {
		if a.phase == released {
			a.end.dueAt = later(a.end.dueAt, until.UTC().Truncate(intake.RetryUnit))
		}
	}
}

func every(*activity) bool { return true }

// isDone reports whether an activity has an outcome that is not committed.
func (s *activities) isDone(id int64) bool {
	a := s.all.find(id)
	return a != nil && a.phase == done
}

// cancel ends the contexts of activities that the events of a turn cancel.
func (s *activities) cancel(events []history.Event) {
	if !s.any() {
		return
	}
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityCancelRequested {
			continue
		}
		for _, id := range e.Sources() {
			if a := s.all.find(id); a != nil {
				s.cancelUnneeded(a, &perdure.CancelledError{Reason: perdure.CancelReason(e.Reason), Message: e.Message})
			}
		}
	}
	s.removeOver()
}

// cancelUnneeded cancels an activity whose outcome the execution does not need.
func (s *activities) cancelUnneeded(a *activity, why error) {
	if a.cancel != nil {
		a.cancel(why)
	}
	s.setOver(a)
}

func (s *activities) setOver(a *activity) {
	a.phase = over
	if a.calls.Load() > 0 {
		s.detached = append(s.detached, a)
	}
}

// errDropped is the reason for which the activities of a discarded execution are stopped.
var errDropped = &perdure.CancelledError{Reason: perdure.ReasonLockLost, Message: "the turn runs again"}

// drop drops all activities. It reports whether history schedules any of them.
func (s *activities) drop() (scheduled bool) {
	for _, a := range s.all {
		scheduled = scheduled || a.segment > 0
		s.cancelUnneeded(a, errDropped)
	}
	s.all = nil
	return scheduled
}

func (s *activities) removeOver() {
	s.all = slices.DeleteFunc(s.all, func(a *activity) bool { return a.phase == over })
}

// appendOutcomes appends the outcomes that a commit can take to the events of its turn.
func (s *activities) appendOutcomes(events []history.Event, now time.Time) []history.Event {
	total, decided := 0, len(events)
	for _, a := range s.all {
		if a.phase != done {
			continue
		}
		if total += a.end.outcome.bytes(); total > maxOutcomeBytes && len(events) > decided {
			break
		}
		events = append(events, a.end.outcome.event(a.event.ID, events[len(events)-1].ID+1, now))
	}
	return events
}

// releaseUnrecorded makes the activities whose outcomes a commit does not contain continue in their queues.
func (s *activities) releaseUnrecorded(outcomes []history.Event) {
	for _, a := range s.all {
		recorded := func(e history.Event) bool { return e.SourceEventID == a.event.ID }
		if a.phase == done && !slices.ContainsFunc(outcomes, recorded) {
			a.phase = released
		}
	}
}

// recordReleases records the next attempts of activities that continue in their queues in the events of a turn. It
// returns the activities that continue in this process.
func (s *activities) recordReleases(events []history.Event) (kept map[int64]bool) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityScheduled || !e.Inline {
			continue
		}
		a := s.all.find(e.ID)
		switch {
		case a == nil || a.segment > 0:
		case a.phase == released:
			a.recordNext(e)
		default:
			if kept == nil {
				kept = map[int64]bool{}
			}
			kept[e.ID] = true
		}
	}
	return kept
}

// committed applies a committed turn. It returns the activities that continue in their queues and were scheduled by an
// earlier commit, because no commit sends them.
func (s *activities) committed(t *provider.Turn) (unsent []*activity) {
	for i := range t.Events {
		if e := &t.Events[i]; e.IsInlineOutcome() {
			if a := s.all.find(e.SourceEventID); a != nil {
				s.setOver(a)
			}
		}
	}
	unsent = s.removeReleased()
	s.setScheduled(t)
	return unsent
}

// setScheduled sets the segment of activities that a turn has scheduled, and their inputs as stored in the segment.
func (s *activities) setScheduled(t *provider.Turn) {
	if !s.any() {
		return
	}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind != history.ActivityScheduled || !e.Inline {
			continue
		}
		if a := s.all.find(e.ID); a != nil && a.segment == 0 {
			a.segment, a.input = t.Head.Segment+1, e.Input
		}
	}
}

// removeReleased removes the activities that continue in their queues. It returns the activities that an earlier commit
// has scheduled, because no commit sends them.
func (s *activities) removeReleased() (unsent []*activity) {
	for _, a := range s.all {
		if a.phase != released {
			continue
		}
		if a.segment > 0 {
			unsent = append(unsent, a)
		}
		s.setOver(a)
	}
	s.removeOver()
	return unsent
}

// awaitDetached waits for the code of ended activities for at most stopGrace, and returns the abandoned activities.
func (s *activities) awaitDetached(ctx context.Context, clock func() time.Time) (abandoned []*activity) {
	runs := func(a *activity) bool { return a.calls.Load() > 0 }
	for until := clock().Add(stopGrace); slices.ContainsFunc(s.detached, runs); {
		now := clock()
		if !now.Before(until) || ctx.Err() != nil {
			break
		}
		s.reports.wait(ctx, now, until)
	}
	for _, a := range s.detached {
		if runs(a) && a.abandon() {
			abandoned = append(abandoned, a)
		}
	}
	s.detached = nil
	return abandoned
}
