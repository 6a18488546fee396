package history

import (
	"maps"
	"slices"
)

// CancelOutstanding returns the events with which an execution ends that nobody replays any more: they cancel, for a reason,
// what past has scheduled and not settled. The activities share an event, and so do the timers; each child has its own, since
// it is told. They have no ids and no times yet.
func CancelOutstanding(past []Event, reason string) []Event {
	var o Outstanding
	for i := range past {
		o.Note(&past[i])
	}
	return o.Cancel(reason)
}

// Outstanding is what a history has begun and not settled. It is for those who read a history bit by bit: it keeps no payload.
type Outstanding struct {
	waiting map[int64]begun
}

// begun is what waits: of which kind it is, and of a child its instance.
type begun struct {
	kind       Kind
	instanceID string
}

// Note takes in the next event of the history.
func (o *Outstanding) Note(e *Event) {
	o.note(e)
	for i := range e.Inputs { // parked: they have settled what they are about
		if in := &e.Inputs[i]; in.Kind != ActivityCancelRequested { // but no turn has come to this: nobody was told
			o.note(in)
		}
	}
}

func (o *Outstanding) note(e *Event) {
	switch e.Kind {
	case ActivityScheduled, TimerCreated, SubOrchestrationScheduled:
		if o.waiting == nil {
			o.waiting = map[int64]begun{}
		}
		o.waiting[e.ID] = begun{kind: e.Kind, instanceID: e.InstanceID}
	default:
		for _, id := range e.Settles() {
			delete(o.waiting, id)
		}
	}
}

// Cancel returns the events that cancel what is outstanding, as CancelOutstanding does.
func (o *Outstanding) Cancel(reason string) []Event {
	var activities, timers []int64
	var children []Event
	for _, id := range slices.Sorted(maps.Keys(o.waiting)) {
		switch w := o.waiting[id]; w.kind {
		case ActivityScheduled:
			activities = append(activities, id)
		case TimerCreated:
			timers = append(timers, id)
		default:
			children = append(children, Event{Kind: SubOrchestrationCancelRequested, SourceEventID: id, InstanceID: w.instanceID, Reason: reason, RequestedBy: RequestedByEngine})
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
