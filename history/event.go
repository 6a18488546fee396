package history

import (
	"fmt"
	"slices"
	"time"
)

// Event is one entry of a history. It is a flat struct, as in the JSON format. ID, Kind and Time are always set. Each
// kind uses some of the other fields: docs/reference/events.md and docs/internals/formats.md list them.
type Event struct {
	// ID is the number of the event in its execution, from 1 without gaps. Activities, timers and sub-orchestrations
	// are identified by the ID of the event that scheduled them.
	ID   int64 `json:"id"`
	Kind Kind  `json:"kind"`
	// Time is the time of the turn in UTC. All events of a turn have the same time.
	Time time.Time `json:"time"`

	// SourceEventID is the ID of the event that this event refers to. SourceEventIDs is used instead for several
	// events. Result and Error are next to these fields for fast access in replays.
	SourceEventID  int64    `json:"sourceEventId,omitempty"`
	Result         Payload  `json:"result,omitempty"`
	Error          *Failure `json:"error,omitempty"`
	SourceEventIDs []Range  `json:"sourceEventIds,omitempty"`

	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	BuildID string `json:"buildId,omitempty"`
	Queue   string `json:"queue,omitempty"`
	// FairnessKey is the tenant of an activity for SQS fair queues.
	FairnessKey string `json:"fairnessKey,omitempty"`
	// ExclusiveKey limits the activities of a queue that have the same key to one running attempt at a time. Queue is
	// then an ExclusiveQueue.
	ExclusiveKey string `json:"exclusiveKey,omitempty"`
	ChangeID     string `json:"change,omitempty"`
	// Orchestration is the name of the orchestration that an update starts if no instance has its ID, with Version and
	// Input.
	Orchestration string `json:"orchestration,omitempty"`

	InstanceID  string `json:"instanceId,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	StartID     string `json:"startId,omitempty"`
	EventID     string `json:"eventId,omitempty"`
	// Number is the number of the execution in its instance, from 1.
	Number  int64 `json:"number,omitempty"`
	Attempt int   `json:"attempt,omitempty"`
	// ParkedConsumed is the number of waiting inputs that a turn consumes. The turn first consumes arrived outcomes,
	// and then parked inputs, oldest first. 0 means all.
	ParkedConsumed int64 `json:"parked,omitempty"`
	// Inline marks an inline activity, and the outcome of an activity that ran inline. The code receives such an
	// outcome at the start of the next turn.
	Inline bool `json:"inline,omitempty"`
	// AtMostOnce marks an activity whose attempts are started at most once.
	AtMostOnce bool `json:"atMostOnce,omitempty"`
	// LargePayloads marks a turn whose payload limit was perdure.MaxLargePayloadBytes. A replay uses the same limit.
	LargePayloads bool `json:"largePayloads,omitempty"`

	StartAt        *time.Time `json:"startAt,omitempty"`
	FireAt         *time.Time `json:"fireAt,omitempty"`
	StartToCloseMs int64      `json:"startToCloseMs,omitempty"`
	// HeartbeatMs limits the time between heartbeats of an activity. ScheduleToCloseMs limits the total time of its
	// attempts and the waits between them.
	HeartbeatMs       int64 `json:"heartbeatMs,omitempty"`
	ScheduleToCloseMs int64 `json:"scheduleToCloseMs,omitempty"`

	Input        Payload `json:"input,omitempty"`
	Output       Payload `json:"output,omitempty"`
	Data         Payload `json:"data,omitempty"`
	Value        Payload `json:"value,omitempty"`
	CustomStatus Payload `json:"customStatus,omitempty"`

	Reason string `json:"reason,omitempty"`
	// Message is a text for people and has no effect. It is the message of a cancel, terminate or pause request, or the
	// name of a timer (see DisplayName).
	Message     string `json:"message,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	// Cancel belongs to a call with WaitForCancellation. It is nil for other events.
	Cancel *CancelDetails `json:"cancel,omitempty"`

	Retry *RetryPolicy `json:"retry,omitempty"`
	// Parent is the instance that waits for this instance. For an external event from another instance, it identifies
	// the sender and its ExternalEventSent event. For an awaited update, it identifies the caller and its UpdateSent
	// event.
	Parent *Parent `json:"parent,omitempty"`
	// Callers are the UpdateSent events of the orchestrations that get a response when an update ends. At the end of an
	// execution, they are the callers of updates that were not accepted.
	Callers       []Parent          `json:"callers,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	CarriedEvents []CarriedEvent    `json:"carriedEvents,omitempty"`
	// EventIDs are the IDs of the last external events of earlier executions, oldest first. They are used to detect
	// duplicates.
	EventIDs []string `json:"eventIds,omitempty"`
	// Inputs are parked inputs, or inputs passed on by the previous execution. In a terminal event, they are external
	// events of other instances that the turn consumed and the code did not, without their data. After a
	// continue-as-new, the next execution receives them.
	Inputs []Event `json:"inputs,omitempty"`

	// TraceParent is the trace context of a start, a turn, or an end without code. Replay does not read it.
	TraceParent TraceParent `json:"traceparent,omitempty"`
}

// The values of RequestedBy for requesters other than callers (see Requester). RequestedByClient is the value for a
// cancel from an unknown caller. Other requests from unknown callers have no requester.
const (
	RequestedByOrchestration = "body"
	RequestedByEngine        = "engine"
	RequestedByClient        = "client"
	RequestedByParent        = "parent:" // followed by the instance ID
)

// MaxTimerNameBytes is the maximum size of a timer's name.
const MaxTimerNameBytes = 256

// DisplayName returns the name of the event for people. It is Name, or Message for a timer.
func (e *Event) DisplayName() string {
	if e.Kind == TimerCreated {
		return e.Message
	}
	return e.Name
}

// WaitsForCancellation reports whether the event schedules work with WaitForCancellation.
func (e *Event) WaitsForCancellation() bool { return e.Cancel != nil && e.Cancel.WaitForCancellation }

// IsInlineOutcome reports whether the event is the outcome of an activity that ran inline. The next turn starts with
// such outcomes.
func (e *Event) IsInlineOutcome() bool {
	return e.Inline && (e.Kind == ActivityCompleted || e.Kind == ActivityFailed)
}

// EndsWithoutCode reports whether the event ends the execution without running its code. Such an event is a
// termination, or a failure because of nondeterminism or a turn that exceeds the commit size.
func (e *Event) EndsWithoutCode() bool {
	failed := e.Kind == OrchestrationFailed && e.Error != nil
	return e.Kind == OrchestrationTerminated ||
		failed && (e.Error.Type == TypeNondeterminism || e.Error.Type == TypePayloadTooLarge)
}

// IsInput reports whether the event is an input event and not a decision. A cancel request is a decision if the code or
// the engine made it, and an input event otherwise.
func (e *Event) IsInput() bool {
	t, _ := e.Kind.traits()
	if t.input {
		return true
	}
	switch e.Kind {
	case ActivityCancelRequested, SubOrchestrationCancelRequested:
		return e.RequestedBy != RequestedByOrchestration && e.RequestedBy != RequestedByEngine
	default:
		return false
	}
}

// Sources returns the IDs of the events that this event refers to.
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

// Settles returns the IDs of the work that this event completed, failed, fired or cancelled. An activity that will be
// retried is not settled.
func (e *Event) Settles() []int64 {
	if !e.Kind.HasSource() || e.Kind == ActivityRetryScheduled {
		return nil
	}
	return e.Sources()
}

// Validate returns an error that describes the first invalid field, or nil.
func (e *Event) Validate() error {
	switch {
	case e.ID < 1:
		return fmt.Errorf("history: event %d: id must be at least 1", e.ID)
	case !e.Kind.Known():
		return fmt.Errorf("history: event %d: unknown kind %q (written by a later release?)", e.ID, e.Kind)
	case e.SourceEventID != 0 && len(e.SourceEventIDs) > 0:
		return fmt.Errorf("history: event %d (%s): has both sourceEventId and sourceEventIds", e.ID, e.Kind)
	case e.Kind.HasSource() && e.SourceEventID == 0 && len(e.SourceEventIDs) == 0:
		return fmt.Errorf("history: event %d (%s): has no sourceEventId", e.ID, e.Kind)
	}
	if e.SourceEventID < 0 || e.SourceEventID > 0 && e.SourceEventID >= e.ID {
		return fmt.Errorf("history: event %d (%s): sourceEventId %d is not an earlier event", e.ID, e.Kind,
			e.SourceEventID)
	}
	return e.validateRanges()
}

// validateRanges checks the ranges of the event and of its parked inputs, because readers list the IDs in them.
func (e *Event) validateRanges() error {
	invalid := func(r Range) bool { return r.First < 1 || r.Last < r.First || r.Last >= e.ID }
	ranges := e.SourceEventIDs
	for i := range e.Inputs {
		ranges = append(slices.Clip(ranges), e.Inputs[i].SourceEventIDs...)
	}
	if i := slices.IndexFunc(ranges, invalid); i >= 0 {
		return fmt.Errorf("history: event %d (%s): sourceEventIds [%d,%d] are not earlier events", e.ID, e.Kind,
			ranges[i].First, ranges[i].Last)
	}
	return nil
}

// String returns a description of the event for logs and diagnoses, with its kind, its ID and the event that it refers
// to.
func (e *Event) String() string {
	s := fmt.Sprintf("%s #%d", e.Kind, e.ID)
	if label := e.DisplayName(); label != "" {
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
