package provider

import (
	"cmp"
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
	// MessageWake carries nothing; it only causes a turn.
	MessageWake MessageKind = "wake"
	// MessageActivityOutcomes reports how activities ended: those of one worker batch and execution together.
	MessageActivityOutcomes MessageKind = "activityOutcomes"
	// MessageActivityAttempts reports failed attempts of activities that have a retry policy: outcomes with a Run. It
	// is a kind of its own, so that a release which does not know it leaves it alone, and does not take an attempt for
	// the activity's end.
	MessageActivityAttempts MessageKind = "activityAttempts"
	// MessageActivityPending reports attempts of activities that are completed from outside: outcomes with Pending. It is a
	// kind of its own, so that a release which would not keep their time leaves it alone.
	MessageActivityPending MessageKind = "activityPending"
	// MessageTimerFired reports that a timer is due.
	MessageTimerFired MessageKind = "timerFired"
	// MessageEventRaised carries an external event.
	MessageEventRaised MessageKind = "eventRaised"
	// MessageTerminate ends the instance at once, without running its code.
	MessageTerminate MessageKind = "terminate"
	// MessageStart creates the instance, as no other kind does. An orchestration sends it to start another one.
	MessageStart MessageKind = "start"
	// MessageChildOutcome reports how a sub-orchestration ended.
	MessageChildOutcome MessageKind = "childOutcome"
	// MessageCancel asks the orchestration to end: its code unwinds. From a parent it applies to the instance of that
	// StartID alone.
	MessageCancel MessageKind = "cancel"
	// MessageCancelActivity asks for one activity to be cancelled.
	MessageCancelActivity MessageKind = "cancelActivity"
	// MessageCancelChildOutcome reports to a parent that a child could not be cancelled, and why.
	MessageCancelChildOutcome MessageKind = "cancelChildOutcome"
	// MessageEventSent carries an external event that an orchestration raises in another instance, and that is answered.
	// It is a kind of its own, so that a release which would not answer leaves it alone.
	MessageEventSent MessageKind = "eventSent"
	// MessageEventAnswered reports to the sender of external events that they were delivered or, with an Error, not.
	MessageEventAnswered MessageKind = "eventAnswered"
	// MessageUpdateSent carries an update that an orchestration sends to another instance, and that is answered. With an Orchestration
	// it starts that where no instance has the id. It is a kind of its own, so that a release which would not answer leaves it alone.
	MessageUpdateSent MessageKind = "updateSent"
	// MessageUpdateAnswered brings to the sender of an update its Result or an Error.
	MessageUpdateAnswered MessageKind = "updateAnswered"
	// MessageExecutionSuspended pauses the instance: its code is not run until a MessageExecutionResumed comes, and what
	// arrives meanwhile is kept (R25). EventID names the order, with history.PauseIDPrefix, so that a copy which comes late
	// is known. A release that does not know these kinds leaves them to others.
	MessageExecutionSuspended MessageKind = "executionSuspended"
	// MessageExecutionResumed ends a pause.
	MessageExecutionResumed MessageKind = "executionResumed"
	// MessageUpdate asks the code of the instance to change something, and to answer (R27): Name, Data, and in EventID the
	// id of the update. A release that does not know it leaves it to others.
	MessageUpdate MessageKind = "update"
)

// ReportBuild is the instance that a MessageWake is for which asks an orchestrator to report its build (Instances.PutBuild), also where it has
// reported at its start. There is no such instance.
const ReportBuild = "perdure:report-build"

// Message is what an instance's inbox takes. It is flat, as on the wire; which fields count depends on Kind.
type Message struct {
	V           int         `json:"v"`
	Kind        MessageKind `json:"kind"`
	InstanceID  string      `json:"instanceId"`
	ExecutionID string      `json:"executionId,omitempty"`
	// Hub is the task hub that the inbox belongs to; empty in a message that an earlier release has sent, and after the
	// message was read.
	Hub string `json:"hub,omitempty"`
	// Segment is the sequence of the segment that led to this message: a cached view that ends earlier is stale (R5).
	Segment int64 `json:"seq,omitempty"`

	Outcomes []ActivityOutcome `json:"outcomes,omitempty"`

	TimerID int64      `json:"timerId,omitempty"`
	FireAt  *time.Time `json:"fireAt,omitempty"`
	// Activity marks a timer that ends the schedule-to-close time of the activity TimerID. Attempt is set on a timer
	// that begins an attempt of the activity TimerID, from 2 on, or that looks after one that is completed from outside.
	Activity bool `json:"activity,omitempty"`
	Attempt  int  `json:"attempt,omitempty"`

	Name    string          `json:"name,omitempty"`
	EventID string          `json:"eventId,omitempty"`
	Data    history.Payload `json:"data,omitempty"`
	// Named marks an update of a client's whose id its sender has chosen: it may have been sent before, and be over by now.
	Named bool `json:"named,omitempty"`
	// SentAt is the time of the turn that sent an event to another instance; Parent is then its sender.
	SentAt *time.Time `json:"sentAt,omitempty"`

	Text string `json:"message,omitempty"`

	// These belong to a start, beside Name. StartID names the start, so that a repetition is not a second one (R10).
	// Any other message with a StartID is for the instance of that start alone, and not for a later one with the same
	// id. Detached marks a start whose end no parent waits for.
	StartID  string            `json:"startId,omitempty"`
	Version  string            `json:"version,omitempty"`
	Input    history.Payload   `json:"input,omitempty"`
	Parent   *history.Parent   `json:"parent,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	StartAt  *time.Time        `json:"startAt,omitempty"`
	Detached bool              `json:"detached,omitempty"`
	// Orchestration is what an update starts where no instance has the id, of Version, with Input: the update's sender and event name the start.
	Orchestration string `json:"orchestration,omitempty"`

	// These belong to a child's outcome: the event that scheduled the child, the child, and Result or Error.
	SourceEventID int64  `json:"sourceEventId,omitempty"`
	ChildID       string `json:"childInstanceId,omitempty"`
	// SourceEventIDs are the events that an answer to their sender concerns; ChildID is then the instance they are for.
	SourceEventIDs []history.Range  `json:"sourceEventIds,omitempty"`
	Result         history.Payload  `json:"result,omitempty"`
	Error          *history.Failure `json:"error,omitempty"`

	// These belong to a cancellation, beside Text: the reason, and who asked, as in history. RequestedBy is also set on
	// an external event, on an update and on an order to terminate, to pause or to resume, where it is known.
	Reason      string `json:"reason,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	ActivityID  int64  `json:"activityId,omitempty"`

	// Refresh marks a wake that only has its instance's status written as history has it, and causes no turn. It counts
	// the tries, from 1. Segment is the segment whose turn could not write the status.
	Refresh int `json:"refresh,omitempty"`

	// PickedUp marks a message that was among the dead letters. It distinguishes this message from the original, so
	// that no queue drops it as a duplicate.
	PickedUp *PickedUp `json:"pickedUp,omitempty"`

	// TraceParent is the trace context in which the message was sent.
	TraceParent history.TraceParent `json:"traceparent,omitempty"`
}

// PickedUp describes a message that its queue had moved to the dead letters and that was sent again, or a work item
// that was sent anew before that: a new record, to which the marks of the old one apply (Attempt).
type PickedUp struct {
	// Record is the ID that the record had first.
	Record string `json:"record"`
	// Times is how often the record was sent again, from 1.
	Times int `json:"times"`
	// MovedAt is when a message came to the dead letters; of several times the first. Until then no message behind it had
	// a turn. Nil where that is not known.
	MovedAt *time.Time `json:"movedAt,omitempty"`
}

// Next returns the PickedUp of a record that is picked up now. p is what the record had already; nil where it was never
// picked up.
func (p *PickedUp) Next(recordID string) *PickedUp {
	if p == nil {
		return &PickedUp{Record: recordID, Times: 1}
	}
	return &PickedUp{Record: p.Record, Times: p.Times + 1, MovedAt: p.MovedAt}
}

// NextMoved is Next for a message that came to the dead letters at a time; zero where that is not known.
func (p *PickedUp) NextMoved(recordID string, at time.Time) *PickedUp {
	next := p.Next(recordID)
	if next.MovedAt == nil && next.Times == 1 && !at.IsZero() {
		at = at.UTC()
		next.MovedAt = &at
	}
	return next
}

// mostReceives is larger than the number of times any queue delivers a message before it moves it away.
const mostReceives = 10_000

// Of returns the record under which marks are stored, whatever has become of the message meanwhile. Its ReceiveCount
// grows over all deliveries, so that a later delivery has the larger count.
func (p *PickedUp) Of(r Record) Record {
	if p != nil {
		r.ID = p.Record
		r.ReceiveCount += p.Times * mostReceives
	}
	return r
}

// ActivityOutcome is how one attempt of an activity ended: Result, or Error.
type ActivityOutcome struct {
	ActivityID int64            `json:"activityId"`
	Attempt    int              `json:"attempt"`
	Result     history.Payload  `json:"result,omitempty"`
	Error      *history.Failure `json:"error,omitempty"`

	// These belong to a failure of an activity that has a retry policy. Run names the run of the code that failed: a
	// repeated report of it, in whatever message, is the same failure. Segment is the sequence of the segment that
	// scheduled the activity. RetryAt is when the policy schedules the next attempt; nil where there is none.
	Run     string     `json:"run,omitempty"`
	Segment int64      `json:"seq,omitempty"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
	// RetryInMs is the policy's delay, in milliseconds, where RetryAt is by the clock of whoever holds a token, which may be wrong: an
	// orchestrator that knows the field counts it from when it takes the failure. Zero elsewhere.
	RetryInMs int64 `json:"retryInMs,omitempty"`

	// These belong to an activity that is waited for when it is cancelled (WorkItem.WaitCancel). Ended is how it ended,
	// one of history.EndXxx, where that is known beside Result and Error. SeenAt is when its worker saw that it is
	// cancelled.
	Ended  string     `json:"ended,omitempty"`
	SeenAt *time.Time `json:"seenAt,omitempty"`

	// Pending marks an attempt that has not ended: its code has returned perdure.ErrPending, and whoever holds its token
	// completes it. Result and Error are then empty.
	Pending *PendingAttempt `json:"pending,omitempty"`
}

// PendingAttempt is an attempt of an activity that is completed from outside, and its limits: the worker that has run its
// code hands it over to the orchestrator, which keeps its time.
type PendingAttempt struct {
	// Name is the activity's. Since is when its code returned.
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64 `json:"seq"`
	// CloseAt is the end of the start-to-close time; nil: there is none.
	CloseAt *time.Time `json:"closeAt,omitempty"`
	// HeartbeatMs is as in WorkItem; BeatenAt is the worker's last heartbeat, or when the attempt began.
	HeartbeatMs int64      `json:"heartbeatMs,omitempty"`
	BeatenAt    *time.Time `json:"beatenAt,omitempty"`
	// BeatSeen is the last heartbeat of a holder that a look has seen, by the holder's clock; BeatenAt is then when it
	// counts as of. A worker does not set it.
	BeatSeen *time.Time `json:"beatSeen,omitempty"`
	// These are as in WorkItem.
	Retry      *history.RetryPolicy `json:"retry,omitempty"`
	CloseBy    *time.Time           `json:"closeBy,omitempty"`
	WaitCancel bool                 `json:"waitCancel,omitempty"`
	// GraceMs is how long an attempt with WaitCancel may take to end once its activity is cancelled.
	GraceMs int64 `json:"graceMs,omitempty"`
}

// WorkItem is one attempt of an activity to run.
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
	// TraceParent is the trace context of the turn that scheduled the activity: the same in each copy and attempt.
	TraceParent history.TraceParent `json:"traceparent,omitempty"`
	// NotBefore is when the attempt is due; a queue's delay may be up to a second shorter. In a work item of an earlier
	// release it may be further away than a queue can delay; the work item is then sent again.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// HeartbeatMs is how long an attempt may go without a heartbeat; 0 is without limit.
	HeartbeatMs int64 `json:"heartbeatMs,omitempty"`
	// CloseBy is when the activity fails if it has not ended, whatever the attempt. Nil: there is no limit.
	CloseBy *time.Time `json:"closeBy,omitempty"`
	// FairnessKey is whose the activity is, of those who share the queue's workers; empty is nobody's.
	FairnessKey string `json:"fairnessKey,omitempty"`
	// ExclusiveKey is what the activity needs for itself while it runs (history.Event); Queue is then a
	// history.ExclusiveQueue, in which the work items of one key are delivered in order, one batch at a time.
	ExclusiveKey string `json:"exclusiveKey,omitempty"`
	// Hub is as in Message.
	Hub string `json:"hub,omitempty"`
	// Again marks a work item that may be a copy of another. Before it runs, a worker checks whether its activity is
	// still open, on the first delivery too.
	Again bool `json:"again,omitempty"`
	// PickedUp marks a work item that was among the dead letters, or would have come there.
	PickedUp *PickedUp `json:"pickedUp,omitempty"`
	// Anew counts how often the work item was sent anew because its code had no part in the failure.
	Anew int `json:"anew,omitempty"`
	// WaitCancel marks an activity that is waited for when it is cancelled: its end is then reported, whatever it is.
	WaitCancel bool `json:"waitCancel,omitempty"`
	// AtMostOnce marks an activity of which no attempt is begun twice.
	AtMostOnce bool `json:"atMostOnce,omitempty"`
	// Token lets a holder of the work item that does not run a worker of this release renew its lock (Tokens). The
	// provider signs it with each send; a work item that an earlier release has sent has none.
	Token string `json:"token,omitempty"`
}

// TakesRun reports whether a worker takes the run of the activity (Run) before it begins its code.
func (w *WorkItem) TakesRun() bool { return w.WaitCancel || w.AtMostOnce }

// Timer is a timer that fires not before FireAt. It may belong to an activity: TimerID is then the activity's id, and
// the timer ends the activity's schedule-to-close time (Activity) or begins its Attempt, from 2 on. Where that attempt is
// pending (PendingAttempt) the timer is for the limits of the attempt.
type Timer struct {
	V           int       `json:"v"`
	InstanceID  string    `json:"instanceId"`
	ExecutionID string    `json:"executionId"`
	Segment     int64     `json:"seq"`
	TimerID     int64     `json:"timerId"`
	FireAt      time.Time `json:"fireAt"`
	Activity    bool      `json:"activity,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`
	// Refresh marks a timer that fires as a wake with this Refresh. TimerID is then an event to which no timer belongs,
	// so that a build which does not know the field fires a timer without effect.
	Refresh int `json:"refresh,omitempty"`
	// Hub is as in Message.
	Hub string `json:"hub,omitempty"`
	// WaitCancel marks a timer that ends the schedule-to-close time of an activity that is waited for when it is
	// cancelled: the timer fires in that case too.
	WaitCancel bool `json:"waitCancel,omitempty"`
}

// IsRefresh reports whether a message only asks for its instance's status to be written, and for no turn.
func (m *Message) IsRefresh() bool { return m.Kind == MessageWake && m.Refresh > 0 }

// Interrupts reports whether the message asks from outside that something of its instance comes to an end: by then it should not wait for inline
// activities (R20). A parent's cancel waits.
func (m *Message) Interrupts() bool {
	switch m.Kind {
	case MessageCancel, MessageTerminate:
		return m.Parent == nil
	case MessageCancelActivity, MessageExecutionSuspended:
		return true
	default:
		return false
	}
}

// missing is the Problem of a field that is not there.
const missing = "is missing"

// DecodeMessage reads an inbox message.
func DecodeMessage(body string) (Message, error) {
	m, plain := plainMessage(body)
	var err error
	if !plain {
		m, err = decoded[Message](body)
	}
	if err = cmp.Or(err, checkVersion(m.V)); err != nil {
		return m, fmt.Errorf("provider: inbox message: %w", err)
	}
	if field := m.lacks(); field != "" {
		return m, fmt.Errorf("provider: inbox message: %w", &FieldError{Field: field, Problem: missing})
	}
	if !m.Kind.known() {
		return m, fmt.Errorf("provider: inbox message: %w", &UnknownKindError{Kind: m.Kind})
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("provider: inbox message: %w", err)
	}
	return m, nil
}

// lacks names a field that the message must have, and has not; empty where it has all.
func (m *Message) lacks() string {
	switch {
	case m.InstanceID == "":
		return "instanceId"
	case (m.Kind.carriesEvent() || m.Kind == MessageStart) && m.Name == "":
		return fieldName
	case m.Kind == MessageStart && m.StartID == "":
		return "startId"
	case (m.Kind == MessageUpdate || m.Kind == MessageUpdateSent) && m.EventID == "":
		return "eventId"
	case m.IsSent() && m.Parent == nil:
		return "parent"
	default:
		return ""
	}
}

// DecodeWorkItem reads a work item.
func DecodeWorkItem(body string) (WorkItem, error) {
	w, plain := plainWorkItem(body)
	var err error
	if !plain {
		w, err = decoded[WorkItem](body)
	}
	if err = cmp.Or(err, checkVersion(w.V)); err != nil {
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
	t, err := decoded[Timer](body)
	if err = cmp.Or(err, checkVersion(t.V)); err != nil {
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

// decoded reads a body of any form. What is read is in memory of its own: where the plain form needs none, it is not taken.
func decoded[T any](body string) (into T, err error) {
	if err := json.Unmarshal([]byte(body), &into); err != nil {
		return into, fmt.Errorf("decode JSON: %w", err)
	}
	return into, nil
}

// checkVersion looks at the version of a body.
func checkVersion(v int) error {
	if v < 1 || v > WireVersion {
		return &FieldError{Field: "v",
			Problem: fmt.Sprintf("%d is not supported by this release (1 to %d)", v, WireVersion)}
	}
	return nil
}

func (k MessageKind) known() bool {
	switch k {
	case MessageWake, MessageActivityOutcomes, MessageActivityAttempts, MessageActivityPending, MessageTimerFired, MessageEventRaised, MessageTerminate, MessageStart, MessageChildOutcome,
		MessageCancel, MessageCancelActivity, MessageCancelChildOutcome, MessageEventSent, MessageEventAnswered, MessageUpdateSent, MessageUpdateAnswered,
		MessageExecutionSuspended, MessageExecutionResumed, MessageUpdate:
		return true
	default:
		return false
	}
}

// carriesEvent reports whether messages of the kind bring an external event, or an update: a name, an id and a document.
func (k MessageKind) carriesEvent() bool {
	return k == MessageEventRaised || k == MessageEventSent || k == MessageUpdate || k == MessageUpdateSent
}
