package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ExecutionRef identifies an execution of an instance.
type ExecutionRef struct{ InstanceID, ExecutionID string }

const (
	// MaxInstanceIDBytes is the maximum size of an instance ID.
	MaxInstanceIDBytes = 1024
	// RetrySuffixBytes is the maximum size of the suffix "~<attempt>" of an instance ID.
	RetrySuffixBytes = 16
)

// ChildID returns the instance ID of a sub-orchestration that was started without one, from the ID of the event that
// schedules it. The result is unique. Running instances compare it, so it never changes.
func (o ExecutionRef) ChildID(eventID int64) string {
	own := fmt.Sprintf("%s:%d", o.ExecutionID, eventID)
	if id := o.InstanceID + ":" + own; len(id) <= MaxInstanceIDBytes-RetrySuffixBytes {
		return id
	}
	return own // each level of children makes ids longer
}

// StartID returns the ID of the start that an event of the execution requests.
func (o ExecutionRef) StartID(eventID int64) string {
	return fmt.Sprintf("%s:%d", o.ExecutionID, eventID)
}

// Restart creates the history of a new execution from the events of another one, up to an event that CheckRestartPoint
// accepts. The new execution continues from there. It sends the work again that was scheduled and had not ended.
type Restart struct {
	From, To ExecutionRef
	// StartID is the start ID of the new instance and Tags are its tags. RequestedBy is the requester of the restart,
	// and At the time of the request.
	StartID     string
	Tags        map[string]string
	RequestedBy string
	At          time.Time
	TraceParent TraceParent
}

// History returns the history of the new execution: the events of past, followed by an ExecutionRestarted. It does not
// modify past. References to documents of other executions do not change.
//
// If past ends with an input event, History parks that event in the ExecutionRestarted, so that the first turn
// processes it with the current code.
func (t *Restart) History(past []Event) []Event {
	restarted := Event{
		ID: past[len(past)-1].ID + 1, Kind: ExecutionRestarted, Time: t.At, InstanceID: t.To.InstanceID,
		ExecutionID: t.To.ExecutionID,
		Parent: &Parent{
			InstanceID: t.From.InstanceID, ExecutionID: t.From.ExecutionID, EventID: past[len(past)-1].ID,
		},
		RequestedBy: t.RequestedBy, TraceParent: t.TraceParent,
	}
	taken := make([]Event, 0, len(past)+1)
	taken = append(taken, past...)
	if last := past[len(past)-1]; last.parks() {
		taken = taken[:len(taken)-1]
		restarted.ID = last.ID
		last.ID = 0 // the turn that consumes it sets its ID
		restarted.Inputs = []Event{last}
	}
	taken = append(taken, restarted)
	t.setIdentity(&taken[0])
	t.rescheduleOpen(taken)
	for i := range taken {
		t.moveReferences(&taken[i])
	}
	return taken
}

// setIdentity sets the identity of the execution in its first event, and the identity that its code sees.
func (t *Restart) setIdentity(started *Event) {
	if started.ExecutionID == "" {
		started.InstanceID, started.ExecutionID = t.From.InstanceID, t.From.ExecutionID
	}
	started.StartID, started.Number, started.Parent = t.StartID, 1, nil
	started.Tags, started.RequestedBy, started.TraceParent = t.Tags, t.RequestedBy, t.TraceParent
}

// rescheduleOpen schedules the open work for the new execution: an activity has new timeouts, and a child is another
// instance unless the code chose its ID.
func (t *Restart) rescheduleOpen(taken []Event) {
	others := t.assignOpen(taken)
	if len(others) == 0 {
		return
	}
	for i := range taken {
		first, attempt := splitAttempt(taken[i].InstanceID)
		if other, renamed := others[first]; renamed && taken[i].Kind == SubOrchestrationScheduled {
			taken[i].InstanceID = other + attempt
		}
	}
}

// assignOpen assigns the schedules of open work to the new execution. It returns the new IDs of children by their old
// IDs.
func (t *Restart) assignOpen(taken []Event) (others map[string]string) {
	state := NewState(TrackOpen, taken...)
	completed := completedChildren(taken)

	others = map[string]string{}
	for i := range taken {
		e := &taken[i]
		o, open := state.Open(e.ID)
		open = open && !o.OutcomeParked // a parked outcome counts as an outcome
		switch {
		case e.Kind == ActivityScheduled && open && e.ScheduleToCloseMs > 0:
			e.ScheduleToCloseMs += t.At.Sub(e.Time).Milliseconds()
		case e.Kind == SubOrchestrationScheduled && (open || e.Retry != nil && !completed[e.ID]):
			if first, id, derived := t.From.derived(e.InstanceID); derived {
				others[first] = t.To.ChildID(id)
			}
			if open {
				e.StartID = t.To.StartID(e.ID)
			}
		default:
		}
	}
	return others
}

// completedChildren returns the children that have completed, by the event that scheduled the last attempt.
func completedChildren(events []Event) map[int64]bool {
	completed := map[int64]bool{}
	note := func(e *Event) {
		if e.Kind == SubOrchestrationCompleted {
			completed[e.SourceEventID] = true
		}
	}
	for i := range events {
		note(&events[i])
		for j := range events[i].Inputs {
			note(&events[i].Inputs[j])
		}
	}
	return completed
}

// splitAttempt splits the ID of a child into that of its first attempt and the "~<attempt>" of a later one.
func splitAttempt(instanceID string) (first, attempt string) {
	if i := strings.LastIndexByte(instanceID, '~'); i >= 0 && strings.Trim(instanceID[i+1:], "0123456789") == "" {
		return instanceID[:i], instanceID[i:]
	}
	return instanceID, ""
}

// derived reports whether the execution derived a child's ID (ChildID). It also returns the ID of the first attempt and
// that attempt's event.
func (o ExecutionRef) derived(instanceID string) (first string, eventID int64, is bool) {
	first, _ = splitAttempt(instanceID)
	eventID, err := strconv.ParseInt(first[strings.LastIndexByte(first, ':')+1:], 10, 64)
	return first, eventID, err == nil && first == o.ChildID(eventID)
}

// IsDerivedChild reports whether the execution derived the instance ID with ChildID.
func (o ExecutionRef) IsDerivedChild(instanceID string) bool {
	_, _, is := o.derived(instanceID)
	return is
}

// moveReferences makes references to documents of the past execution refer to the copies in the first segment of the
// new one.
func (t *Restart) moveReferences(e *Event) {
	copied := false
	e.EachExternalData(func(field string, index int, data *Payload) {
		ref, refers := data.Reference()
		if !refers {
			return
		}
		at, err := ParseDataLocation(ref.Ref)
		if err != nil || at.ExecutionID != t.From.ExecutionID {
			return
		}
		if !copied { // the lists belong to the past events
			e.CarriedEvents, e.Inputs = slices.Clone(e.CarriedEvents), slices.Clone(e.Inputs)
			copied = true
		}
		at.ExecutionID, at.Segment = t.To.ExecutionID, 0
		ref.Ref = at.String()
		switch field {
		case LocationInputs:
			e.Inputs[index].Data = NewReferencePayload(ref)
		case LocationCarriedEvents:
			e.CarriedEvents[index].Data = NewReferencePayload(ref)
		default:
			e.Data = NewReferencePayload(ref)
		}
	})
}
