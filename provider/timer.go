package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// TimerSpan is a timer that waits: from when, and until when.
type TimerSpan struct {
	TimerID int64
	// FireAt is zero of an activity that has no timer but those of its attempts.
	CreatedAt, FireAt time.Time
	// Retries: the timer's id is that of an activity with a retry policy, and an attempt of it may wait by a timer of its own (Timer.Attempt).
	// Until when history does not say.
	Retries bool
	// Waits: the activity is waited for when it is cancelled. Until it has ended its schedule-to-close time goes on.
	Waits bool
}

// TimerSpans are the timers of an execution that wait, by id: its own, those that end the schedule-to-close times of activities,
// those that attempts of activities may wait by, and that of a delayed start.
type TimerSpans map[int64]TimerSpan

// startTimer is the timer of a delayed start: the event that every execution begins with.
const startTimer = 1

// closeLeeway is how much later than a worker the timer of an activity says that its schedule-to-close time is over: who runs
// it knows better how it ended.
const closeLeeway = time.Second

// closeBy is when the schedule-to-close time of an activity is over, if it has one.
func closeBy(scheduled *history.Event) (at time.Time, limited bool) {
	return scheduled.Time.Add(time.Duration(scheduled.ScheduleToCloseMs) * time.Millisecond), scheduled.ScheduleToCloseMs > 0
}

// Cancelled are those of the timers which the events make needless: they cancel it, settle its activity, or end what it was to start.
// What the same events create was never anywhere else.
func (s TimerSpans) Cancelled(events []history.Event) (cancelled []TimerSpan) {
	for i := range events {
		e := &events[i]
		if span, ok := s[startTimer]; ok && e.Kind.Terminal() {
			cancelled = append(cancelled, span)
		}
		if len(s) == 0 || e.Kind == history.TimerFired || !settlesTimer(e.Kind) {
			continue
		}
		for _, id := range e.Sources() {
			span, ok := s[id]
			if span.Waits && e.Kind == history.ActivityCancelRequested {
				span.FireAt = time.Time{} // that timer goes on
			}
			if span.Retries = span.Retries && givesUp(e); ok && (span.Retries || !span.FireAt.IsZero()) {
				cancelled = append(cancelled, span)
			}
		}
	}
	return cancelled
}

// givesUp reports whether an event ends an activity while an attempt of it may wait: what comes of an attempt came after the wait.
func givesUp(e *history.Event) bool {
	return e.Kind == history.ActivityCancelRequested || e.Kind == history.ActivityFailed && e.Attempt == 0 // its schedule-to-close time is over
}

// settlesTimer reports whether an event of that kind ends the wait for a timer, or for the activity that it is for.
func settlesTimer(k history.Kind) bool {
	switch k {
	case history.TimerFired, history.TimerCancelled, history.ActivityCompleted, history.ActivityFailed, history.ActivityCancelRequested, history.OutputFailed:
		return true
	default:
		return false
	}
}

// Apply takes over what events create, and leaves out what they settle.
func (s TimerSpans) Apply(events []history.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.OrchestrationStarted && e.StartAt != nil:
			s[startTimer] = TimerSpan{TimerID: startTimer, CreatedAt: e.Time, FireAt: *e.StartAt}
		case e.Kind == history.TimerCreated:
			s[e.ID] = TimerSpan{TimerID: e.ID, CreatedAt: e.Time, FireAt: *e.FireAt}
		case e.Kind == history.ActivityScheduled:
			by, limited := closeBy(e)
			if limited || e.Retry != nil {
				span := TimerSpan{TimerID: e.ID, CreatedAt: e.Time, Retries: e.Retry != nil, Waits: e.Waits()}
				if limited {
					span.FireAt = by.Add(closeLeeway)
				}
				s[e.ID] = span
			}
		case len(s) > 0 && settlesTimer(e.Kind):
			s.settle(e)
		default: // nothing of timers
		}
	}
}

// settle takes out what an event ends. Of an activity that is cancelled, and waited for, no other attempt comes.
func (s TimerSpans) settle(e *history.Event) {
	for _, id := range e.Sources() {
		if span := s[id]; span.Waits && e.Kind == history.ActivityCancelRequested && !span.FireAt.IsZero() {
			span.Retries = false
			s[id] = span
		} else {
			delete(s, id)
		}
	}
}
