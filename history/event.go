package history

import (
	"fmt"
	"time"
)

// Event is one entry of a history: one flat struct, as on the wire. ID, Kind and Time are always set; of the other fields,
// those that the kind uses (the table in docs/design.md), and the rest stay zero.
type Event struct {
	// ID numbers the events of an execution from 1, without gaps. An activity, timer or child is known by the id of the event that scheduled it.
	ID   int64 `json:"id"`
	Kind Kind  `json:"kind"`
	// Time is that of the turn, in UTC; all events of a turn share it.
	Time time.Time `json:"time"`

	// SourceEventID is the one event this is about; SourceEventIDs are several. Never both.
	SourceEventID  int64   `json:"sourceEventId,omitempty"`
	SourceEventIDs []Range `json:"sourceEventIds,omitempty"`

	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	BuildID string `json:"buildId,omitempty"`
	Queue   string `json:"queue,omitempty"`
	Change  string `json:"change,omitempty"`

	InstanceID  string `json:"instanceId,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	StartID     string `json:"startId,omitempty"`
	EventID     string `json:"eventId,omitempty"`
	// Number counts the executions of an instance, from 1.
	Number  int64 `json:"number,omitempty"`
	Attempt int   `json:"attempt,omitempty"`
	// Parked is how many of the parked inputs a turn takes, the oldest first, where it takes no more; 0: all there are.
	Parked int64 `json:"parked,omitempty"`

	StartAt        *time.Time `json:"startAt,omitempty"`
	FireAt         *time.Time `json:"fireAt,omitempty"`
	StartToCloseMs int64      `json:"startToCloseMs,omitempty"`
	// HeartbeatMs limits the time between heartbeats of an activity, ScheduleToCloseMs all its attempts and the waits between.
	HeartbeatMs       int64 `json:"heartbeatMs,omitempty"`
	ScheduleToCloseMs int64 `json:"scheduleToCloseMs,omitempty"`

	Input        Payload `json:"input,omitempty"`
	Result       Payload `json:"result,omitempty"`
	Output       Payload `json:"output,omitempty"`
	Data         Payload `json:"data,omitempty"`
	Value        Payload `json:"value,omitempty"`
	CustomStatus Payload `json:"customStatus,omitempty"`

	Reason      string   `json:"reason,omitempty"`
	Message     string   `json:"message,omitempty"`
	RequestedBy string   `json:"requestedBy,omitempty"`
	Error       *Failure `json:"error,omitempty"`
	// Cancel is what the event says of a cancel that is waited for; nil where that is nothing, as with all that nobody waits for.
	Cancel *CancelNote `json:"cancel,omitempty"`

	Retry         *RetryPolicy      `json:"retry,omitempty"`
	Parent        *Parent           `json:"parent,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	CarriedEvents []CarriedEvent    `json:"carriedEvents,omitempty"`
	// EventIDs are those of the external events that earlier executions have seen last, oldest first: they are duplicates here too.
	EventIDs []string `json:"eventIds,omitempty"`
	Inputs   []Event  `json:"inputs,omitempty"`
}

// Who asked, where it is not the identity of a caller (Requester). A parent is "parent:" and its instance id. RequestedByClient is a caller of whom
// nothing is known; of starts, external events and orders to terminate history says nothing then.
const (
	RequestedByBody   = "body"
	RequestedByEngine = "engine"
	RequestedByClient = "client"
	RequestedByParent = "parent:" // and the instance id
)

// Waits reports whether the event schedules something that is waited for when it is cancelled.
func (e *Event) Waits() bool { return e.Cancel != nil && e.Cancel.Wait }

// IsInput reports whether the event came from outside, rather than being a decision of the orchestration: a cancel request
// is a decision when the body or the engine took it, and an input when anybody else asked.
func (e *Event) IsInput() bool {
	t, _ := e.Kind.traits()
	if t.input {
		return true
	}
	switch e.Kind {
	case ActivityCancelRequested, SubOrchestrationCancelRequested:
		return e.RequestedBy != RequestedByBody && e.RequestedBy != RequestedByEngine
	default:
		return false
	}
}

// Sources are the ids of the events that this one is about.
func (e *Event) Sources() (ids []int64) {
	if e.SourceEventID != 0 {
		return []int64{e.SourceEventID}
	}
	for _, r := range e.SourceEventIDs {
		for id := r.First; id <= r.Last; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// Settles are the ids that are over with this event: completed, failed, fired or cancelled. An activity that is tried again is not.
func (e *Event) Settles() []int64 {
	if !e.Kind.Sourced() || e.Kind == ActivityRetryScheduled {
		return nil
	}
	return e.Sources()
}

// Validate tells the first thing that makes the event unusable, naming the field.
func (e *Event) Validate() error {
	switch {
	case e.ID < 1:
		return fmt.Errorf("history: event %d: id must be at least 1", e.ID)
	case !e.Kind.Known():
		return fmt.Errorf("history: event %d: unknown kind %q (written by a later release?)", e.ID, e.Kind)
	case e.SourceEventID != 0 && len(e.SourceEventIDs) > 0:
		return fmt.Errorf("history: event %d (%s): both sourceEventId and sourceEventIds", e.ID, e.Kind)
	case e.Kind.Sourced() && e.SourceEventID == 0 && len(e.SourceEventIDs) == 0:
		return fmt.Errorf("history: event %d (%s): no sourceEventId", e.ID, e.Kind)
	}
	return e.validateSources()
}

func (e *Event) validateSources() error {
	if e.SourceEventID < 0 || e.SourceEventID > 0 && e.SourceEventID >= e.ID {
		return fmt.Errorf("history: event %d (%s): sourceEventId %d is not an earlier event", e.ID, e.Kind, e.SourceEventID)
	}
	for _, r := range e.SourceEventIDs {
		if r.First < 1 || r.Last < r.First || r.Last >= e.ID {
			return fmt.Errorf("history: event %d (%s): sourceEventIds [%d,%d] are not earlier events", e.ID, e.Kind, r.First, r.Last)
		}
	}
	return nil
}

// String names the event for logs and diagnoses: kind, id, and what it is about.
func (e *Event) String() string {
	s := fmt.Sprintf("%s #%d", e.Kind, e.ID)
	if e.Name != "" {
		s += fmt.Sprintf(" %q", e.Name)
	}
	if e.SourceEventID != 0 {
		s += fmt.Sprintf(" of #%d", e.SourceEventID)
	}
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	return s
}
