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
	// RetrySuffixBytes is the maximum size in bytes of the suffix "~<attempt>" of an instance ID.
	RetrySuffixBytes = 16
)

// ChildID returns the instance ID of a sub-orchestration that was started without an ID. eventID is the ID of the event
// that schedules it. The result is unique. The format never changes, because replays of running instances compare it.
func (o ExecutionRef) ChildID(eventID int64) string {
	own := fmt.Sprintf("%s:%d", o.ExecutionID, eventID)
	if id := o.InstanceID + ":" + own; len(id) <= MaxInstanceIDBytes-RetrySuffixBytes {
		return id
	}
	return own // the full ID grows with each level of children
}

// StartID returns the ID of the start that an event of the execution requests.
func (o ExecutionRef) StartID(eventID int64) string {
	return fmt.Sprintf("%s:%d", o.ExecutionID, eventID)
}

// Restart creates the history of a new execution from the events of another execution, up to an event that
// CheckRestartPoint accepts. The new execution continues after this event. It again sends the work that was scheduled
// and had not ended.
type Restart struct {
	From, To ExecutionRef
	// StartID is the start ID of the new instance, and Tags are its tags. RequestedBy is the requester of the restart,
	// and At is the time of the request.
	StartID     string
	Tags        map[string]string
	RequestedBy string
	At          time.Time
	TraceParent TraceParent
}

// History returns the history of the new execution, which consists of the events of past and an ExecutionRestarted
// event. It does not modify past. References to documents of other executions do not change.
//
// If past ends with an input event, History parks that event in the ExecutionRestarted event, so that the first turn
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
		last.ID = 0 // the turn that consumes the input sets the ID
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

// setIdentity sets the identity of the new execution in its first event. The code still sees the instance and execution
// IDs of the original execution, which stay in this event.
func (t *Restart) setIdentity(started *Event) {
	if started.ExecutionID == "" {
		started.InstanceID, started.ExecutionID = t.From.InstanceID, t.From.ExecutionID
	}
	started.StartID, started.Number, started.Parent = t.StartID, 1, nil
	started.Tags, started.RequestedBy, started.TraceParent = t.Tags, t.RequestedBy, t.TraceParent
}

// rescheduleOpen schedules the open work for the new execution. Activities get new timeouts, and children get new
// instance IDs unless the code chose the ID.
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

// assignOpen changes the schedule events of open work for the new execution. It returns the new IDs of children by
// their old IDs.
func (t *Restart) assignOpen(taken []Event) (others map[string]string) {
	state := NewState(TrackOpen, taken...)
	completed := completedChildren(taken)

	others = map[string]string{}
	for i := range taken {
		e := &taken[i]
		o, open := state.Open(e.ID)
		open = open && !o.OutcomeParked // work with a parked outcome has ended
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

// completedChildren returns the IDs of the events that scheduled the last attempt of completed children.
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

// splitAttempt splits the ID of a child into the ID of its first attempt and the suffix "~<attempt>" of a later
// attempt.
func splitAttempt(instanceID string) (first, attempt string) {
	if i := strings.LastIndexByte(instanceID, '~'); i >= 0 && strings.Trim(instanceID[i+1:], "0123456789") == "" {
		return instanceID[:i], instanceID[i:]
	}
	return instanceID, ""
}

// derived reports whether the execution derived a child's ID (ChildID). It also returns the ID of the first attempt,
// and the ID of the event that scheduled the first attempt.
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

// moveReferences changes references to documents of the original execution, so that they refer to the copies in the
// first segment of the new execution.
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
		if !copied { // the original events share the lists
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
