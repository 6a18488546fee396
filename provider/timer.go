package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// TimerSpan is a timer that waits: from when, and until when.
type TimerSpan struct {
	TimerID           int64
	CreatedAt, FireAt time.Time
}

// TimerSpans are the timers of an execution that wait, by id.
type TimerSpans map[int64]TimerSpan

// Cancelled are those of the timers which the events cancel. What the same events create was never anywhere else.
func (s TimerSpans) Cancelled(events []history.Event) (cancelled []TimerSpan) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.TimerCancelled {
			continue
		}
		for _, id := range e.Sources() {
			if span, ok := s[id]; ok {
				cancelled = append(cancelled, span)
			}
		}
	}
	return cancelled
}

// Apply takes over what events create, and leaves out what they settle.
func (s TimerSpans) Apply(events []history.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case history.TimerCreated:
			s[e.ID] = TimerSpan{TimerID: e.ID, CreatedAt: e.Time, FireAt: *e.FireAt}
		case history.TimerFired, history.TimerCancelled:
			for _, id := range e.Sources() {
				delete(s, id)
			}
		default: // nothing of timers
		}
	}
}
