package history

import (
	"maps"
	"slices"
)

// trackCallers updates the orchestrations that wait for updates with an event and its parked inputs.
func trackCallers(s *State, e *Event) {
	await(s, e)
	for i := range e.Inputs {
		await(s, &e.Inputs[i])
	}
	if (e.Kind == UpdateCompleted || e.Kind == UpdateRejected) && len(s.awaited) > 0 {
		delete(s.awaited, e.EventID)
	}
}

func await(s *State, e *Event) {
	if e.Kind != UpdateAwaited || e.Parent == nil || slices.Contains(s.awaited[e.EventID], *e.Parent) {
		return
	}
	if s.awaited == nil {
		s.awaited = map[string][]Parent{}
	}
	s.awaited[e.EventID] = append(s.awaited[e.EventID], *e.Parent)
}

// EventsToEnd returns the events that end an execution without running its code. They are the events of
// CancelOutstanding, followed by end. EventsToEnd adds the callers of updates that were never accepted to end, so that
// these callers get a response. The state must have TrackOpen.
func EventsToEnd(s *State, reason string, end Event) []Event {
	cancels := s.CancelOutstanding(reason)
	end.Callers = append(end.Callers, UnansweredCallers(s, cancels)...)
	return append(cancels, end)
}

// UnansweredCallers returns the callers of updates that the events do not end. The state must have TrackOpen.
func UnansweredCallers(s *State, ends []Event) (callers []Parent) {
	over := map[string]bool{}
	for i := range ends {
		if ends[i].Kind == UpdateCompleted {
			over[ends[i].EventID] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.awaited)) {
		if !over[id] {
			callers = append(callers, s.awaited[id]...)
		}
	}
	return callers
}
