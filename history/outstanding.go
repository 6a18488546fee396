package history

import (
	"maps"
	"slices"
)

// CancelOutstanding returns the events with which an execution ends that nobody replays any more: they cancel, for a reason,
// what past has scheduled and not settled. The activities share an event, and so do the timers; each child has its own, since
// it is told. They have no ids and no times yet.
func CancelOutstanding(past []Event, reason string) []Event {
	waiting := map[int64]*Event{}
	for i := range past {
		note(waiting, &past[i])
		for j := range past[i].Inputs { // parked: they have settled what they are about
			if in := &past[i].Inputs[j]; in.Kind != ActivityCancelRequested { // but no turn has come to this: nobody was told
				note(waiting, in)
			}
		}
	}
	var activities, timers []int64
	var children []Event
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		switch e := waiting[id]; e.Kind {
		case ActivityScheduled:
			activities = append(activities, id)
		case TimerCreated:
			timers = append(timers, id)
		default:
			children = append(children, Event{Kind: SubOrchestrationCancelRequested, SourceEventID: id, InstanceID: e.InstanceID, Reason: reason, RequestedBy: RequestedByEngine})
		}
	}
	var cancels []Event
	if len(activities) > 0 {
		cancels = append(cancels, about(Event{Kind: ActivityCancelRequested, Reason: reason, RequestedBy: RequestedByEngine}, activities))
	}
	if len(timers) > 0 {
		cancels = append(cancels, about(Event{Kind: TimerCancelled, Reason: reason}, timers))
	}
	return append(cancels, children...)
}

func note(waiting map[int64]*Event, e *Event) {
	switch e.Kind {
	case ActivityScheduled, TimerCreated, SubOrchestrationScheduled:
		waiting[e.ID] = e
	default:
		for _, id := range e.Settles() {
			delete(waiting, id)
		}
	}
}

// about names what an event is about: one id, or several packed.
func about(e Event, ids []int64) Event {
	if len(ids) == 1 {
		e.SourceEventID = ids[0]
		return e
	}
	for _, id := range ids {
		e.SourceEventIDs = AppendID(e.SourceEventIDs, id)
	}
	return e
}
