package provider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// WireVersion is the version of messages, work items and timers that this release writes. Larger ones are dead letters.
const WireVersion = 1

// MessageKind says what an inbox message asks for.
type MessageKind string

// The kinds of inbox messages.
const (
	// MessageWake brings nothing but the turn it causes.
	MessageWake MessageKind = "wake"
	// MessageActivityOutcomes tells how activities ended: those of one worker batch and execution together.
	MessageActivityOutcomes MessageKind = "activityOutcomes"
	// MessageActivityAttempts tells how attempts failed of activities that have a retry policy: outcomes with a Run. It is a kind of its
	// own, so that a release which knows nothing of it leaves it alone, and takes no attempt for the activity's end.
	MessageActivityAttempts MessageKind = "activityAttempts"
	// MessageTimerFired tells that a timer is due.
	MessageTimerFired MessageKind = "timerFired"
	// MessageEventRaised brings an external event.
	MessageEventRaised MessageKind = "eventRaised"
	// MessageTerminate ends the instance at once, without running its code.
	MessageTerminate MessageKind = "terminate"
	// MessageStart makes the instance: it is the only kind that does. An orchestration sends it for another.
	MessageStart MessageKind = "start"
	// MessageChildOutcome tells how a sub-orchestration ended.
	MessageChildOutcome MessageKind = "childOutcome"
	// MessageCancel asks the orchestration to end: its code unwinds. From a parent it is for the instance of that StartID alone.
	MessageCancel MessageKind = "cancel"
	// MessageCancelActivity asks for one activity to be cancelled.
	MessageCancelActivity MessageKind = "cancelActivity"
	// MessageCancelChildOutcome tells a parent that a child could not be cancelled, and why.
	MessageCancelChildOutcome MessageKind = "cancelChildOutcome"
)

// Message is what an instance's inbox takes. Flat, as on the wire; which fields count depends on Kind.
type Message struct {
	V           int         `json:"v"`
	Kind        MessageKind `json:"kind"`
	InstanceID  string      `json:"instanceId"`
	ExecutionID string      `json:"executionId,omitempty"`
	// Hub is the task hub whose inbox it is for; empty of one that an earlier release has sent, and once it was read.
	Hub string `json:"hub,omitempty"`
	// Segment is the sequence of the segment that led to this message: a cached view that ends earlier is stale (R5).
	Segment int64 `json:"seq,omitempty"`

	Outcomes []ActivityOutcome `json:"outcomes,omitempty"`

	TimerID int64      `json:"timerId,omitempty"`
	FireAt  *time.Time `json:"fireAt,omitempty"`
	// Activity is of a timer that ends the schedule-to-close time of the activity TimerID. Attempt is of one that begins an attempt of
	// the activity TimerID, from 2 on.
	Activity bool `json:"activity,omitempty"`
	Attempt  int  `json:"attempt,omitempty"`

	Name    string          `json:"name,omitempty"`
	EventID string          `json:"eventId,omitempty"`
	Data    history.Payload `json:"data,omitempty"`

	Text string `json:"message,omitempty"`

	// Of a start, beside Name. StartID names it: a repetition is no second one (R10). Any other message that has one is for the
	// instance of that start alone, and not for another that has its id later. Detached is one that nobody waits for.
	StartID  string            `json:"startId,omitempty"`
	Version  string            `json:"version,omitempty"`
	Input    history.Payload   `json:"input,omitempty"`
	Parent   *history.Parent   `json:"parent,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	StartAt  *time.Time        `json:"startAt,omitempty"`
	Detached bool              `json:"detached,omitempty"`

	// Of a child's outcome: the event that scheduled it, the child, and Result or Error.
	SourceEventID int64            `json:"sourceEventId,omitempty"`
	ChildID       string           `json:"childInstanceId,omitempty"`
	Result        history.Payload  `json:"result,omitempty"`
	Error         *history.Failure `json:"error,omitempty"`

	// Of a cancellation, beside Text: what for, and who asked, as in history; that is also of an external event and of an order to terminate, where it is
	// known.
	Reason      string `json:"reason,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	ActivityID  int64  `json:"activityId,omitempty"`

	// Refresh is of a wake that is to write the status of its instance as history has it, and to cause no turn: how often that was
	// tried, from 1. Segment is the one whose turn could not write it.
	Refresh int `json:"refresh,omitempty"`

	// PickedUp is of a message that was among the dead letters. It is told apart by it from the one that it was: no queue may take the
	// two for one.
	PickedUp *PickedUp `json:"pickedUp,omitempty"`
}

// PickedUp is what is known of a message whose queue had moved it to its dead letters, and that was sent again, or of a work item that was
// sent anew before that: a new record, which the marks of the old one are of (Attempt).
type PickedUp struct {
	// Record is the ID of the record that it was first.
	Record string `json:"record"`
	// Times is how often that has happened, from 1.
	Times int `json:"times"`
}

// Next is what a record becomes that is picked up now. p is what it was already; nil where it was never picked up.
func (p *PickedUp) Next(recordID string) *PickedUp {
	if p == nil {
		return &PickedUp{Record: recordID, Times: 1}
	}
	return &PickedUp{Record: p.Record, Times: p.Times + 1}
}

// mostReceives is more than any queue delivers a message before it moves it away.
const mostReceives = 10_000

// Of is the record by which marks are kept, whatever has become of the message meanwhile: of all deliveries there were the later
// counts more.
func (p *PickedUp) Of(r Record) Record {
	if p != nil {
		r.ID, r.ReceiveCount = p.Record, p.Times*mostReceives+r.ReceiveCount
	}
	return r
}

// ActivityOutcome is how one attempt of an activity ended: Result, or Error.
type ActivityOutcome struct {
	ActivityID int64            `json:"activityId"`
	Attempt    int              `json:"attempt"`
	Result     history.Payload  `json:"result,omitempty"`
	Error      *history.Failure `json:"error,omitempty"`

	// Of a failure of an activity that has a retry policy. Run names the very run of the code that failed: told again, in whatever
	// message, it is the same failure. Segment is the sequence of the segment that scheduled the activity. RetryAt is when the policy
	// has it tried again; nil: not any more.
	Run     string     `json:"run,omitempty"`
	Segment int64      `json:"seq,omitempty"`
	RetryAt *time.Time `json:"retryAt,omitempty"`

	// Of an activity that is waited for when it is cancelled (WorkItem.WaitCancel). Ended is how it ended, one of history.EndXxx, where
	// that is known beside Result and Error, SeenAt when its worker saw that it is cancelled.
	Ended  string     `json:"ended,omitempty"`
	SeenAt *time.Time `json:"seenAt,omitempty"`
}

// WorkItem is an activity to run: one attempt of it.
type WorkItem struct {
	V              int                  `json:"v"`
	InstanceID     string               `json:"instanceId"`
	ExecutionID    string               `json:"executionId"`
	Segment        int64                `json:"seq"`
	ActivityID     int64                `json:"activityId"`
	Name           string               `json:"name"`
	Queue          string               `json:"queue"`
	Attempt        int                  `json:"attempt"`
	Input          history.Payload      `json:"input,omitempty"`
	StartToCloseMs int64                `json:"startToCloseMs,omitempty"`
	Retry          *history.RetryPolicy `json:"retry,omitempty"`
	TraceParent    string               `json:"traceparent,omitempty"`
	// NotBefore is when the attempt is due: a queue's delay is short of it by up to a second. In releases before this one it may be
	// further away than a queue can delay; then the work item is sent again.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// HeartbeatMs is how long an attempt may go without a heartbeat; 0: for ever.
	HeartbeatMs int64 `json:"heartbeatMs,omitempty"`
	// CloseBy is when the activity has failed if it has not ended, whatever the attempt. Nil: it may take as long as it takes.
	CloseBy *time.Time `json:"closeBy,omitempty"`
	// Hub is as in Message.
	Hub string `json:"hub,omitempty"`
	// Again is of one that may be a copy of another: before it is run it is looked whether its activity is still open, whichever
	// delivery it is.
	Again bool `json:"again,omitempty"`
	// PickedUp is of one that was among the dead letters, or would have come there.
	PickedUp *PickedUp `json:"pickedUp,omitempty"`
	// Anew counts how often it was sent anew, because its code had no part in what failed.
	Anew int `json:"anew,omitempty"`
	// WaitCancel is of an activity that is waited for when it is cancelled: its end is told then, whatever it is.
	WaitCancel bool `json:"waitCancel,omitempty"`
}

// Timer is a timer to fire: not before FireAt. It may be an activity's: TimerID is that of the activity then, and it ends its
// schedule-to-close time (Activity), or begins its Attempt, from 2 on.
type Timer struct {
	V           int       `json:"v"`
	InstanceID  string    `json:"instanceId"`
	ExecutionID string    `json:"executionId"`
	Segment     int64     `json:"seq"`
	TimerID     int64     `json:"timerId"`
	FireAt      time.Time `json:"fireAt"`
	Activity    bool      `json:"activity,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`
	// Refresh is of one that fires as a wake with this Refresh. TimerID is an event that no timer is of: a build that does not know
	// the field fires a timer that nobody waits for.
	Refresh int `json:"refresh,omitempty"`
	// Hub is as in Message.
	Hub string `json:"hub,omitempty"`
	// WaitCancel is of one that ends the schedule-to-close time of an activity that is waited for when it is cancelled: it fires then, too.
	WaitCancel bool `json:"waitCancel,omitempty"`
}

// IsRefresh reports whether a message asks for its instance's status to be written, and for no turn.
func (m *Message) IsRefresh() bool { return m.Kind == MessageWake && m.Refresh > 0 }

// missing is what is wrong with a field that is not there.
const missing = "is missing"

// DecodeMessage reads an inbox message.
func DecodeMessage(body string) (Message, error) {
	var m Message
	if err := decode(body, &m, &m.V); err != nil {
		return m, fmt.Errorf("provider: inbox message: %w", err)
	}
	switch {
	case m.InstanceID == "":
		return m, fmt.Errorf("provider: inbox message: %w", &FieldError{Field: "instanceId", Problem: missing})
	case (m.Kind == MessageEventRaised || m.Kind == MessageStart) && m.Name == "":
		return m, fmt.Errorf("provider: inbox message: %w", &FieldError{Field: fieldName, Problem: missing})
	case m.Kind == MessageStart && m.StartID == "":
		return m, fmt.Errorf("provider: inbox message: %w", &FieldError{Field: "startId", Problem: missing})
	case !m.Kind.known():
		return m, fmt.Errorf("provider: inbox message: %w", &UnknownKindError{Kind: m.Kind})
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("provider: inbox message: %w", err)
	}
	return m, nil
}

// DecodeWorkItem reads a work item.
func DecodeWorkItem(body string) (WorkItem, error) {
	var w WorkItem
	if err := decode(body, &w, &w.V); err != nil {
		return w, fmt.Errorf("provider: work item: %w", err)
	}
	switch {
	case w.InstanceID == "" || w.ExecutionID == "":
		return w, fmt.Errorf("provider: work item: %w", &FieldError{Field: "instanceId, executionId", Problem: "are missing"})
	case w.ActivityID < 1:
		return w, fmt.Errorf("provider: work item: %w", &FieldError{Field: "activityId", Problem: "must be at least 1"})
	case w.Name == "":
		return w, fmt.Errorf("provider: work item: %w", &FieldError{Field: fieldName, Problem: missing})
	}
	return w, nil
}

// DecodeTimer reads a timer.
func DecodeTimer(body string) (Timer, error) {
	var t Timer
	if err := decode(body, &t, &t.V); err != nil {
		return t, fmt.Errorf("provider: timer: %w", err)
	}
	switch {
	case t.InstanceID == "" || t.ExecutionID == "":
		return t, fmt.Errorf("provider: timer: %w", &FieldError{Field: "instanceId, executionId", Problem: "are missing"})
	case t.TimerID < 1:
		return t, fmt.Errorf("provider: timer: %w", &FieldError{Field: "timerId", Problem: "must be at least 1"})
	}
	return t, nil
}

func decode(body string, into any, version *int) error {
	if err := json.Unmarshal([]byte(body), into); err != nil {
		return fmt.Errorf("not JSON of the expected form: %w", err)
	}
	if *version < 1 || *version > WireVersion {
		return &FieldError{Field: "v", Problem: fmt.Sprintf("%d is not a version this release reads (1 to %d)", *version, WireVersion)}
	}
	return nil
}

func (k MessageKind) known() bool {
	switch k {
	case MessageWake, MessageActivityOutcomes, MessageActivityAttempts, MessageTimerFired, MessageEventRaised, MessageTerminate, MessageStart, MessageChildOutcome,
		MessageCancel, MessageCancelActivity, MessageCancelChildOutcome:
		return true
	default:
		return false
	}
}
