package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// WireVersion is the version of messages, work items and timers that this release writes. Records with a higher version
// are moved to the dead-letter queue.
const WireVersion = 1

// MessageKind is the kind of an inbox message.
type MessageKind string

// The kinds of inbox messages.
const (
	// MessageWake causes a turn and has no content.
	MessageWake MessageKind = "wake"
	// MessageActivityOutcomes reports outcomes of activities of one execution from one worker batch.
	MessageActivityOutcomes MessageKind = "activityOutcomes"
	// MessageActivityAttempts reports failed attempts of activities with a retry policy. Its outcomes have a Run.
	MessageActivityAttempts MessageKind = "activityAttempts"
	// MessageActivityPending reports attempts that wait for asynchronous completion. Its outcomes have Pending.
	MessageActivityPending MessageKind = "activityPending"
	// MessageTimerFired reports that a timer is due.
	MessageTimerFired MessageKind = "timerFired"
	// MessageEventRaised carries an external event.
	MessageEventRaised MessageKind = "eventRaised"
	// MessageTerminate ends the instance immediately, without running its code.
	MessageTerminate MessageKind = "terminate"
	// MessageStart creates the instance. Orchestrations send it to start other orchestrations.
	MessageStart MessageKind = "start"
	// MessageChildOutcome reports the outcome of a sub-orchestration.
	MessageChildOutcome MessageKind = "childOutcome"
	// MessageCancel cancels the instance. A cancel from a parent applies only to the instance with the StartID of the
	// message.
	MessageCancel MessageKind = "cancel"
	// MessageCancelActivity cancels one activity.
	MessageCancelActivity MessageKind = "cancelActivity"
	// MessageCancelChildOutcome reports to a parent that a child could not be cancelled, and the reason.
	MessageCancelChildOutcome MessageKind = "cancelChildOutcome"
	// MessageEventSent carries an external event from another instance. The sender receives a response.
	MessageEventSent MessageKind = "eventSent"
	// MessageEventAnswered reports to the sender that its external events were delivered. With an Error, it reports
	// that they were not delivered.
	MessageEventAnswered MessageKind = "eventAnswered"
	// MessageUpdateSent carries an update from another instance. The sender receives a response. With an Orchestration,
	// the message starts that orchestration if no instance has the ID.
	MessageUpdateSent MessageKind = "updateSent"
	// MessageUpdateAnswered carries the Result or Error of an update to its sender.
	MessageUpdateAnswered MessageKind = "updateAnswered"
	// MessageExecutionSuspended pauses the instance (client.Pause): "suspended" is the stored word for paused. The code
	// does not run until a MessageExecutionResumed arrives, and inputs are parked (history.InputsParked, R25). EventID
	// identifies the request, with history.PauseIDPrefix, so that the instance ignores a late copy.
	MessageExecutionSuspended MessageKind = "executionSuspended"
	// MessageExecutionResumed resumes the instance.
	MessageExecutionResumed MessageKind = "executionResumed"
	// MessageUpdate carries an update from a client (R27). EventID is the ID of the update.
	MessageUpdate MessageKind = "update"
)

// ReportBuildInstanceID is the instance ID of a MessageWake that requests an orchestrator to report its build
// (Orchestrations.PutBuild). No instance has this ID.
const ReportBuildInstanceID = "perdure:report-build"

// Message is a message in the inbox of an instance. Its JSON is the wire format. Kind determines which fields are used.
type Message struct {
	V           int         `json:"v"`
	Kind        MessageKind `json:"kind"`
	InstanceID  string      `json:"instanceId"`
	ExecutionID string      `json:"executionId,omitempty"`
	// Hub is the name of the hub that owns the inbox. It is empty in messages of earlier releases and in decoded
	// messages.
	Hub string `json:"hub,omitempty"`
	// Segment is the sequence of the segment that caused this message. A cached history that ends before this segment
	// is stale (R5).
	Segment int64 `json:"seq,omitempty"`

	Outcomes []ActivityOutcome `json:"outcomes,omitempty"`

	TimerID int64      `json:"timerId,omitempty"`
	FireAt  *time.Time `json:"fireAt,omitempty"`
	// Activity marks a timer for the schedule-to-close timeout of the activity TimerID. Attempt marks a timer that
	// starts this attempt of the activity, from 2, or that checks the timeouts of a pending attempt.
	Activity bool `json:"activity,omitempty"`
	Attempt  int  `json:"attempt,omitempty"`

	Name    string          `json:"name,omitempty"`
	EventID string          `json:"eventId,omitempty"`
	Data    history.Payload `json:"data,omitempty"`
	// CustomUpdateID marks an update of a client with an ID that the caller chose. The update may have been sent
	// before.
	CustomUpdateID bool `json:"named,omitempty"`
	// SentAt is the time of the turn that sent an event or update to another instance. Parent is then the sender.
	SentAt *time.Time `json:"sentAt,omitempty"`

	Text string `json:"message,omitempty"`

	// StartID identifies a start, so that a repeated message does not start a second instance (R10). Any other message
	// with a StartID is only for the incarnation that this start created. A start uses the fields from StartID to
	// Detached and Name. Detached marks a start without a parent that waits for its outcome.
	StartID  string            `json:"startId,omitempty"`
	Version  string            `json:"version,omitempty"`
	Input    history.Payload   `json:"input,omitempty"`
	Parent   *history.Parent   `json:"parent,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	StartAt  *time.Time        `json:"startAt,omitempty"`
	Detached bool              `json:"detached,omitempty"`
	// Orchestration is the orchestration that an update starts if no instance has the ID, with Version and Input.
	Orchestration string `json:"orchestration,omitempty"`

	// SourceEventID is the event that scheduled a child, and ChildID is the child. Result or Error is its outcome.
	SourceEventID int64  `json:"sourceEventId,omitempty"`
	ChildID       string `json:"childInstanceId,omitempty"`
	// SourceEventIDs are the events of the sender that a response refers to. ChildID is then the instance that received
	// these events.
	SourceEventIDs []history.Range  `json:"sourceEventIds,omitempty"`
	Result         history.Payload  `json:"result,omitempty"`
	Error          *history.Failure `json:"error,omitempty"`

	// Reason is the reason of a cancellation, and RequestedBy is its requester, as in package history. RequestedBy is
	// also set on external events, updates, and requests to terminate, pause or resume, if the requester is known.
	Reason      string `json:"reason,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	ActivityID  int64  `json:"activityId,omitempty"`

	// Refresh marks a wake that only writes the instance's status from history, without a turn. It is the number of the
	// attempt, from 1. Segment is the segment whose turn could not write the status.
	Refresh int `json:"refresh,omitempty"`

	// Redrive is set for a message that was recovered from a dead-letter queue, so that queues do not drop it as a
	// duplicate.
	Redrive *Redrive `json:"pickedUp,omitempty"`

	// TraceParent is the trace context of the sender.
	TraceParent history.TraceParent `json:"traceparent,omitempty"`
}

// Redrive describes a message or work item that was recovered from a dead-letter queue, or was resent before its queue
// moved it there. The crash markers of the original record apply to it.
type Redrive struct {
	// Record is the original ID of the record.
	Record string `json:"record"`
	// Times is the number of times that the record was sent again.
	Times int `json:"times"`
	// MovedAt is the time at which a queue first moved the message to the dead-letter queue, or nil if it is not known.
	MovedAt *time.Time `json:"movedAt,omitempty"`
}

// Next returns the Redrive of a record that is recovered now. p is nil if the record was not recovered before.
func (p *Redrive) Next(recordID string) *Redrive {
	if p == nil {
		return &Redrive{Record: recordID, Times: 1}
	}
	return &Redrive{Record: p.Record, Times: p.Times + 1, MovedAt: p.MovedAt}
}

// NextMoved is like Next for a message that a queue moved to the dead-letter queue at the given time. Zero means that
// the time is not known.
func (p *Redrive) NextMoved(recordID string, at time.Time) *Redrive {
	next := p.Next(recordID)
	if next.MovedAt == nil && next.Times == 1 && !at.IsZero() {
		at = at.UTC()
		next.MovedAt = &at
	}
	return next
}

// mostReceives is greater than the maximum number of deliveries before a queue moves a message.
const mostReceives = 10_000

// Of returns the record under which crash markers are stored. Its ReceiveCount increases with each delivery, before and
// after the recovery.
func (p *Redrive) Of(r Record) Record {
	if p != nil {
		r.ID = p.Record
		r.ReceiveCount += p.Times * mostReceives
	}
	return r
}

// ActivityOutcome is the outcome of one attempt of an activity. It has a Result, an Error or Pending.
type ActivityOutcome struct {
	ActivityID int64            `json:"activityId"`
	Attempt    int              `json:"attempt"`
	Result     history.Payload  `json:"result,omitempty"`
	Error      *history.Failure `json:"error,omitempty"`

	// Run is set for a failure of an activity with a retry policy. It identifies the failed run, so that a repeated
	// report has no effect. Segment is the sequence of the segment that scheduled the activity. RetryAt is the time of
	// the next attempt, or nil if no attempt follows.
	Run     string     `json:"run,omitempty"`
	Segment int64      `json:"seq,omitempty"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
	// RetryInMs is the delay of the next attempt in milliseconds, if RetryAt is from the clock of a token holder. The
	// orchestrator counts the delay from the receipt of the failure. Otherwise it is zero.
	RetryInMs int64 `json:"retryInMs,omitempty"`

	// Ended is set for an activity with WorkItem.WaitForCancellation if its outcome is known in addition to Result and
	// Error. It is one of the history.Outcome constants. SeenAt is the time at which the worker observed the
	// cancellation.
	Ended  string     `json:"ended,omitempty"`
	SeenAt *time.Time `json:"seenAt,omitempty"`

	// Pending is set if the attempt has not ended, because its code returned perdure.ErrPending. Result and Error are
	// then empty.
	Pending *PendingAttempt `json:"pending,omitempty"`
}

// PendingAttempt is an attempt that waits for asynchronous completion, with its timeouts. The worker sends it to the
// orchestrator, which enforces the timeouts.
type PendingAttempt struct {
	// Name is the name of the activity. Since is the time at which its code returned.
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	// Segment is the sequence of the segment that scheduled the activity.
	Segment int64 `json:"seq"`
	// StartToCloseDeadline is the time of the start-to-close timeout, or nil.
	StartToCloseDeadline *time.Time `json:"closeAt,omitempty"`
	// HeartbeatMs is described in WorkItem. LastHeartbeatAt is the time of the worker's last heartbeat, or of the start
	// of the attempt.
	HeartbeatMs     int64      `json:"heartbeatMs,omitempty"`
	LastHeartbeatAt *time.Time `json:"beatenAt,omitempty"`
	// HeartbeatSeenAt is the time of the last heartbeat of a token holder that a check has read, from the holder's
	// clock. The heartbeat timeout then counts from LastHeartbeatAt. Workers do not set HeartbeatSeenAt.
	HeartbeatSeenAt *time.Time `json:"beatSeen,omitempty"`
	// Retry, ScheduleToCloseDeadline and WaitForCancellation are described in WorkItem.
	Retry                   *history.RetryPolicy `json:"retry,omitempty"`
	ScheduleToCloseDeadline *time.Time           `json:"closeBy,omitempty"`
	WaitForCancellation     bool                 `json:"waitCancel,omitempty"`
	// GraceMs is the grace period of an attempt with WaitForCancellation, in milliseconds.
	GraceMs int64 `json:"graceMs,omitempty"`
}

// WorkItem is one attempt of an activity, as a work queue delivers it.
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
	// TraceParent is the trace context of the turn that scheduled the activity. It is the same in each copy and
	// attempt.
	TraceParent history.TraceParent `json:"traceparent,omitempty"`
	// NotBefore is the time at which the attempt is due. A queue can deliver the work item up to a second earlier. If
	// NotBefore is beyond the maximum delay of a queue, as in work items of earlier releases, the work item is sent
	// again.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// HeartbeatMs is the heartbeat timeout in milliseconds. 0 means no timeout.
	HeartbeatMs int64 `json:"heartbeatMs,omitempty"`
	// ScheduleToCloseDeadline is the time at which the activity fails if no attempt has ended it, or nil.
	ScheduleToCloseDeadline *time.Time `json:"closeBy,omitempty"`
	// FairnessKey is the tenant of the activity in an SQS fair queue, or empty.
	FairnessKey string `json:"fairnessKey,omitempty"`
	// ExclusiveKey limits activities with the same key to one running attempt (history.Event). Queue is then a
	// history.ExclusiveQueue, which delivers the work items of one key in order, one batch at a time.
	ExclusiveKey string `json:"exclusiveKey,omitempty"`
	// Hub is described in Message.
	Hub string `json:"hub,omitempty"`
	// PossibleDuplicate marks a possible copy of another work item. The worker checks before the run that the activity
	// is still open, even on the first delivery.
	PossibleDuplicate bool `json:"again,omitempty"`
	// Redrive is set for a work item that was recovered from a dead-letter queue, or was resent before its queue moved
	// it there.
	Redrive *Redrive `json:"pickedUp,omitempty"`
	// ResendCount is the number of times that the work item was resent because its code did not cause the failure.
	ResendCount int `json:"anew,omitempty"`
	// WaitForCancellation marks an activity whose outcome is reported even after a cancellation.
	WaitForCancellation bool `json:"waitCancel,omitempty"`
	// AtMostOnce marks an activity whose attempts start at most once.
	AtMostOnce bool `json:"atMostOnce,omitempty"`
	// Token authorizes a holder of the work item to renew its lock (worktoken.Signer). The provider signs it with each
	// send. Work items of earlier releases have no token.
	Token string `json:"token,omitempty"`
}

// NeedsRunClaim reports whether a worker must claim the run of the activity (ClaimRun) before it starts the code. The
// documentation calls this claim the run lease.
func (w *WorkItem) NeedsRunClaim() bool { return w.WaitForCancellation || w.AtMostOnce }

// Timer is a timer that does not fire before FireAt. If it belongs to an activity, TimerID is the activity's ID. Such a
// timer is for the schedule-to-close timeout (Activity), starts the attempt Attempt, from 2, or checks the timeouts of
// a pending attempt.
type Timer struct {
	V           int       `json:"v"`
	InstanceID  string    `json:"instanceId"`
	ExecutionID string    `json:"executionId"`
	Segment     int64     `json:"seq"`
	TimerID     int64     `json:"timerId"`
	FireAt      time.Time `json:"fireAt"`
	Activity    bool      `json:"activity,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`
	// Refresh marks a timer that fires as a wake with this Refresh. TimerID is then the ID of an event without a timer,
	// so that releases without this field ignore the timer.
	Refresh int `json:"refresh,omitempty"`
	// Hub is described in Message.
	Hub string `json:"hub,omitempty"`
	// WaitForCancellation marks a timer for the schedule-to-close timeout of an activity with
	// WorkItem.WaitForCancellation. It fires even if the activity is cancelled.
	WaitForCancellation bool `json:"waitCancel,omitempty"`
}

// IsRefresh reports whether the message only refreshes its instance's status, without a turn.
func (m *Message) IsRefresh() bool { return m.Kind == MessageWake && m.Refresh > 0 }

// Interrupts reports whether the message is an external request to end or pause work of its instance. The session then
// releases the instance instead of waiting for inline activities (R20). A parent's cancel does not interrupt.
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

// IsSent reports whether the message is an external event or an update of another instance. The sender always receives
// a response.
func (m *Message) IsSent() bool { return m.Kind == MessageEventSent || m.Kind == MessageUpdateSent }

// Inputs returns the events that the history records for an update from another orchestration.
func (m *Message) Inputs(data history.Payload) []history.Event {
	return []history.Event{
		{Kind: history.UpdateAwaited, Name: m.Name, EventID: m.EventID, Parent: m.Parent},
		{Kind: history.UpdateAccepted, Name: m.Name, EventID: m.EventID, Data: data},
	}
}

// RejectedEvents maps the ID of a sending execution to the events and updates that were rejected for an instance ID. A
// range of event IDs is sufficient, because the messages of a sender arrive in order.
type RejectedEvents map[string]history.Range

// Has reports whether the event or update in a message was rejected. In this case, the sender has received a rejection.
func (r RejectedEvents) Has(m *Message) bool {
	if !m.IsSent() {
		return false
	}
	refused, ok := r[m.Parent.ExecutionID]
	return ok && refused.First <= m.Parent.EventID && m.Parent.EventID <= refused.Last
}
