package history

import (
	"fmt"
	"time"
)

// Event is one entry of a history: one flat struct, as on the wire. ID, Kind and Time are always set; of the other
// fields, each kind uses some (the table in docs/internals/formats.md), and the rest stay zero.
type Event struct {
	// ID numbers the events of an execution from 1, without gaps. An activity, timer or child is identified by the id
	// of the event that scheduled it.
	ID   int64 `json:"id"`
	Kind Kind  `json:"kind"`
	// Time is that of the turn, in UTC; all events of a turn share it.
	Time time.Time `json:"time"`

	// SourceEventID is the event that this one concerns; SourceEventIDs are several. Never both. Result and Error are beside it since
	// replay reads these of each outcome, and little else: apart, they took it 5 % longer.
	SourceEventID  int64    `json:"sourceEventId,omitempty"`
	Result         Payload  `json:"result,omitempty"`
	Error          *Failure `json:"error,omitempty"`
	SourceEventIDs []Range  `json:"sourceEventIds,omitempty"`

	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	BuildID string `json:"buildId,omitempty"`
	Queue   string `json:"queue,omitempty"`
	// FairnessKey is whose an activity is, where the workers of a queue are shared fairly among those who have any.
	FairnessKey string `json:"fairnessKey,omitempty"`
	// ExclusiveKey is what an activity needs for itself while it runs: of those on a queue with the same key one runs at a
	// time. Queue is then an ExclusiveQueue.
	ExclusiveKey string `json:"exclusiveKey,omitempty"`
	Change       string `json:"change,omitempty"`
	// Orchestration is what an update starts where there is no instance of its id, of Version, with Input.
	Orchestration string `json:"orchestration,omitempty"`

	InstanceID  string `json:"instanceId,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	StartID     string `json:"startId,omitempty"`
	EventID     string `json:"eventId,omitempty"`
	// Number counts the executions of an instance, from 1.
	Number  int64 `json:"number,omitempty"`
	Attempt int   `json:"attempt,omitempty"`
	// Parked is how many of the inputs that wait a turn takes, where it does not take all: first the outcomes that have
	// arrived, then what is parked, the oldest of each first; 0: all.
	Parked int64 `json:"parked,omitempty"`
	// Inline marks an activity that was to run in the function that decided it, and the outcome of one that did. The code
	// has not seen such an outcome where it stands: it arrives behind the decisions of a turn, and the next turn begins
	// with it (R20).
	Inline bool `json:"inline,omitempty"`
	// AtMostOnce marks an activity of which no attempt is begun twice.
	AtMostOnce bool `json:"atMostOnce,omitempty"`
	// LargePayloads marks a turn whose code had perdure.MaxLargePayloadBytes as its limit: a replay holds the code to the same.
	LargePayloads bool `json:"largePayloads,omitempty"`

	StartAt        *time.Time `json:"startAt,omitempty"`
	FireAt         *time.Time `json:"fireAt,omitempty"`
	StartToCloseMs int64      `json:"startToCloseMs,omitempty"`
	// HeartbeatMs limits the time between heartbeats of an activity, ScheduleToCloseMs the time of all its attempts and
	// the waits between them.
	HeartbeatMs       int64 `json:"heartbeatMs,omitempty"`
	ScheduleToCloseMs int64 `json:"scheduleToCloseMs,omitempty"`

	Input        Payload `json:"input,omitempty"`
	Output       Payload `json:"output,omitempty"`
	Data         Payload `json:"data,omitempty"`
	Value        Payload `json:"value,omitempty"`
	CustomStatus Payload `json:"customStatus,omitempty"`

	Reason string `json:"reason,omitempty"`
	// Message is for people, and nothing depends on it: of a cancel, an order to terminate or a pause what was said, of a
	// timer its name (Label).
	Message     string `json:"message,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	// Cancel is what the event records of a cancel that is waited for; nil where there is nothing to record, as always
	// where no cancel is waited for.
	Cancel *CancelNote `json:"cancel,omitempty"`

	Retry *RetryPolicy `json:"retry,omitempty"`
	// Parent is the instance that waits for this one; of an external event that another instance has raised, that
	// instance and its ExternalEventSent; of an update that is awaited, who waits, and its UpdateSent.
	Parent *Parent `json:"parent,omitempty"`
	// Callers are the orchestrations that an update's end answers, and of the end of an execution those whose updates it has not come to: each
	// by its UpdateSent.
	Callers       []Parent          `json:"callers,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	CarriedEvents []CarriedEvent    `json:"carriedEvents,omitempty"`
	// EventIDs are the ids of the external events that earlier executions have received last, oldest first: a
	// repetition is a duplicate here too.
	EventIDs []string `json:"eventIds,omitempty"`
	// Inputs are parked, or handed on from the execution before. Those of an end are external events of other instances,
	// without their data, that its turn has consumed and its code has not: continued as new, the next execution has them.
	Inputs []Event `json:"inputs,omitempty"`

	// TraceParent is the trace context of a start, of a turn, or of an end without code. No decision depends on it: replay
	// does not read it, so it is behind all that replay reads.
	TraceParent TraceParent `json:"traceparent,omitempty"`
}

// The requesters that are not the identity of a caller (Requester). RequestedByClient is a caller of which nothing is
// known; starts, external events and orders to terminate then have no requester.
const (
	RequestedByBody   = "body"
	RequestedByEngine = "engine"
	RequestedByClient = "client"
	RequestedByParent = "parent:" // and the instance id
)

// MaxTimerNameBytes bounds the name of a timer.
const MaxTimerNameBytes = 256

// Label is what the event is called where people read it: its Name, or the name of a timer. That stands in Message, since
// replay compares Name and not Message: a release from before timers had names goes on with one that has, copies it
// where it copies a history, and shows it.
func (e *Event) Label() string {
	if e.Kind == TimerCreated {
		return e.Message
	}
	return e.Name
}

// Waits reports whether the event schedules something that is waited for when it is cancelled.
func (e *Event) Waits() bool { return e.Cancel != nil && e.Cancel.Wait }

// Arrives reports whether the event is the outcome of an activity that ran inline: the next turn begins with it (R20).
func (e *Event) Arrives() bool {
	return e.Inline && (e.Kind == ActivityCompleted || e.Kind == ActivityFailed)
}

// EndsWithoutCode reports whether the event is an end that no code took part in: an order to terminate, or a failure because the code differs from
// history or because its turn was too large for any commit.
func (e *Event) EndsWithoutCode() bool {
	failed := e.Kind == OrchestrationFailed && e.Error != nil
	return e.Kind == OrchestrationTerminated || failed && (e.Error.Type == TypeNondeterminism || e.Error.Type == TypePayloadTooLarge)
}

// IsInput reports whether the event came from outside, rather than being a decision of the orchestration. A cancel
// request is a decision when the body or the engine made it, and an input otherwise.
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

// Sources returns the ids of the events that this one concerns.
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

// Settles returns the ids that are over with this event: completed, failed, fired or cancelled. An activity that is
// tried again is not.
func (e *Event) Settles() []int64 {
	if !e.Kind.Sourced() || e.Kind == ActivityRetryScheduled {
		return nil
	}
	return e.Sources()
}

// Validate returns the first fault that makes the event unusable, naming the field.
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

// String names the event for logs and diagnoses: kind, id, and what it concerns.
func (e *Event) String() string {
	s := fmt.Sprintf("%s #%d", e.Kind, e.ID)
	if label := e.Label(); label != "" {
		s += fmt.Sprintf(" %q", label)
	}
	if e.SourceEventID != 0 {
		s += fmt.Sprintf(" of #%d", e.SourceEventID)
	}
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	return s
}
