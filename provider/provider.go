package provider

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
)

// Provider stores a task hub and transports its messages. All methods are safe for concurrent use and return early when
// ctx ends. A failed call returns an *Error that reports whether the call can be repeated, unless it returns a more
// specific sentinel error.
type Provider interface {
	// Instances contains the methods that clients call.
	Instances
	// Orchestrations contains the methods that turns call. Records come from the inbox, either from a function's event
	// (push) or from a Poller.
	Orchestrations
	// WorkItems contains the methods that workers call.
	WorkItems
	Workers
	// Timers holds timers, and finds instances that are stuck.
	//
	// The three methods that find instances yield a few at a time and store their progress, so that an interrupted
	// search continues in the next call. A caller must process the yielded instances before it requests the next ones.
	// The methods yield an error for items that cannot be read, and continue if possible. Concurrent searches are
	// allowed.
	Timers
	Retentions
	Jobs
	Schedules
	PoisonHandler
	// Records contains operations on records that do not depend on their content.
	Records
}

// Instances contains the methods that clients call.
type Instances interface {
	// StartOrchestration creates the instance and its first execution atomically, and wakes the instance immediately or
	// at StartAt. A repetition with the same StartID only wakes the instance again (R11). It returns ErrAlreadyExists
	// if another start uses the ID, together with the instance that has it, even if that one has ended. It returns
	// ErrPurged if the instance of the same StartID was purged, and ErrUnknownOrchestration if no deployed build
	// registers the orchestration. The orchestration is checked before the ID.
	StartOrchestration(ctx context.Context, s Start) (Instance, error)
	// EnqueueForOrchestrator sends messages to the inboxes of their instances. The messages of one instance stay in
	// order. A message is never lost, but it can arrive twice, the second time possibly after later messages. If only
	// some messages were accepted, the error says so, and the caller can repeat all. Before it sends messages that
	// interrupt (Message.Interrupts), it records on a best-effort basis that they are on their way, for
	// ReadInterruption.
	EnqueueForOrchestrator(ctx context.Context, ms ...Message) error
	// ReadInstance reads an instance with strong consistency. It returns ErrNotFound if the instance does not exist.
	ReadInstance(ctx context.Context, instanceID string) (Instance, error)
	// ReadTerminalEvent reads the terminal event of an execution, with its output or error. It returns ErrNotFound if the
	// execution has not ended.
	ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error)
	// ReadHistory yields the events of an execution with IDs above after, in order. It holds the events of only a few
	// turns in memory. It returns ErrNotFound if the instance has no such execution, and ErrCorrupt at the first event
	// that cannot be read. It replaces references to documents by the documents, up to MaxResolvedBytes bytes per event.
	// References beyond this limit, and references to erased documents, stay.
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	// ListExecutions yields the executions of an instance, the current one first. It returns ErrNotFound if the
	// instance does not exist.
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[Execution, error]
	// ListInstances reads a page of instances, newest first, from an index that can be a second behind. A page can be
	// short or empty without being the last one. Instances can lack fields that the index does not contain: the StartID
	// and the diagnosis.
	ListInstances(ctx context.Context, q ListQuery) (Page, error)
	// ReadActivityRecords yields the activity records of an execution by activity ID, with strong consistency. Most
	// activities have no record. An unknown execution has none.
	ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[ActivityRecord, error]
	// ReadRetries yields the attempt records of an execution by activity ID, with strong consistency: the activities
	// that have failed and will be retried. They include activities that have ended since. History decides.
	ReadRetries(ctx context.Context, executionID string) iter.Seq2[ActivityRetry, error]
	// DeleteInstance deletes an instance that has ended or, with force, any instance. A running instance ends first:
	// its activities, timers and children are cancelled, and its parent receives its outcome. The deletion records the
	// starts that must not be repeated, and prevents events for this instance from reaching a later instance with the
	// same ID. Repeat the call until it succeeds. Each call continues where the last one stopped, and the status is
	// StatusDeleting until then. It returns ErrNotFound if the instance does not exist or no longer exists, and
	// ErrNotEnded if the instance has not ended and force is false (R17).
	DeleteInstance(ctx context.Context, instanceID string, force bool) error
	// ReadUpdate reads the result of an update with strong consistency. It returns ErrNotFound if there is no result
	// yet, or if it was deleted after UpdateResultRetention. The result can belong to an earlier incarnation of the ID
	// (UpdateResult.StartID).
	ReadUpdate(ctx context.Context, instanceID, updateID string) (UpdateResult, error)
	// PutBuild stores the orchestrations and activities of a build, and records it as the build that reported last.
	PutBuild(ctx context.Context, b Build) error
	// ReadBuild reads the last report of a build with strong consistency. It returns ErrNotFound if the build has never
	// reported.
	ReadBuild(ctx context.Context, id string) (Build, error)
}

// Orchestrations contains the methods that turns call. Records come from the inbox, either from a function's event
// (push) or from a Poller.
type Orchestrations interface {
	// DecodeOrchestrationItems groups inbox records by instance and keeps their order. It returns unreadable records
	// separately. Pass them to DeadLetter.
	DecodeOrchestrationItems(records []Record) (items []*OrchestrationItem, unreadable []Unreadable)
	// CreateOrchestration atomically creates the instance of a start message and its first execution. It returns the
	// instance's current execution, verified, even if the same start created it earlier (R10). It returns
	// ErrAlreadyExists if another start uses the ID. Pass the message to RejectStart then.
	CreateOrchestration(ctx context.Context, m *InboxMessage) (*Orchestration, error)
	// RejectStart records that a start was rejected because its ID is in use, so that the start can never succeed
	// later. It then reports this to the waiting parent (R10).
	RejectStart(ctx context.Context, m *InboxMessage) error
	// RejectCancel handles a parent's cancel for an ID without an instance. It makes sure that the cancelled start can
	// never succeed, and then reports to the parent that the child is cancelled (R16). It returns ErrConflict if the
	// instance exists by now.
	RejectCancel(ctx context.Context, m *InboxMessage) error
	// RejectEvents rejects events and updates that another instance sent (MessageEventSent, MessageUpdateSent) to an
	// instance that has ended or does not exist. It makes sure that no copy of them ever reaches an instance with that
	// ID, and then reports to the sender that they were not delivered (R24). All messages must have the same instance
	// ID. over is the execution that has ended, or empty if there is no instance. It returns ErrConflict if another
	// execution or instance exists by now. Events that were rejected earlier are only answered.
	RejectEvents(ctx context.Context, over string, ms ...*InboxMessage) error
	// ReadRejectedEvents reads, with strong consistency, the events of other instances that were rejected for an ID.
	ReadRejectedEvents(ctx context.Context, instanceID string) (RejectedEvents, error)
	// ReadOrchestration reads the execution that item's messages are for, or the execution that it continued as. It
	// returns ErrNotFound if there is none, and ErrCorrupt if it cannot be read. An eventually consistent read can miss
	// the latest segments, or all of them. The result contains a bounded amount of the large data of external events
	// (DataBudget), and references to the rest.
	ReadOrchestration(ctx context.Context, item *OrchestrationItem, c Consistency) (*Orchestration, error)
	// ReadDocument reads the document that a payload refers to, from any execution of the instance. It returns
	// ErrNotFound if the document was erased, and ErrCorrupt if it is missing or does not match the reference.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// PutUpdateResults writes the results of updates of one incarnation of an instance, as a dispatch does (R27). An
	// existing result of that incarnation stays, unless its outcome is UpdateResultExpired. Nothing is written while the
	// instance is being deleted. The call is idempotent.
	PutUpdateResults(ctx context.Context, answers ...UpdateResult) error
	// AckOrchestrationItem commits a turn and sends its outputs. The commit is atomic. ErrConflict means that another
	// turn committed first, and that nothing of this turn was stored (R7). An error after the commit is an
	// ErrDispatchIncomplete: let the messages be redelivered and call RedispatchOrchestration. It returns the outputs
	// that can never be sent. The next turn records them as failed (R9). A status other than Blocked or a terminal one
	// is written on a best-effort basis. If that write fails, the call succeeds, and a refresh is requested
	// (RefreshStatus). The provider does not retain t or t.Events.
	AckOrchestrationItem(ctx context.Context, t *Turn) (refused []OutputFailure, err error)
	// TerminateCorrupt ends an instance whose history cannot be read (ErrCorrupt), as the message requests. It writes
	// the end behind the readable part of the history, reports it to the parent and cancels the activities. Timers and
	// children of the instance are not known and not cancelled. The call is idempotent. It returns ErrConflict if a
	// turn was committed in the meantime.
	TerminateCorrupt(ctx context.Context, m *InboxMessage) error
	// ReadInterruption reads, with strong consistency, when EnqueueForOrchestrator last sent a message that interrupts
	// (Message.Interrupts) to an instance. The time is zero if there was none recently. An invocation that holds the
	// instance's messages and runs inline activities uses it as a hint to yield (R20).
	ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error)
	// RefreshStatus writes the instance's status from its history, for a wake that requests it (Message.Refresh) or
	// carries nothing else. It repairs the status if an earlier turn could not write it. It never overwrites the status
	// of a later turn or of an instance that has ended (R9). If it fails, it has requested another, later refresh, and
	// the error is only for the log.
	RefreshStatus(ctx context.Context, wake *Message) error
	// RedispatchOrchestration sends the unsettled outputs of a verified execution, and of the executions that it
	// continues, again: those of the segments from since to the head (R4).
	RedispatchOrchestration(ctx context.Context, o *Orchestration, since RedispatchFrom) (refused []OutputFailure, err error)
	// RetryActivities advances activities that have a retry policy.
	//
	// For each failure of the current attempt with a RetryAt, it makes the next attempt the current one, in a write
	// that also checks that Head is the head. It then sends that attempt with a delay, or with a timer (HoldTimers) if
	// the delay exceeds the limit of the queue.
	//
	// If the next attempt is already the current one, the failure was reported before, and the same attempt is sent
	// again. The same applies to a failure without a RetryAt whose run led to the current attempt. The verdicts
	// describe all other failures. If all verdicts are RetryExhausted, the call only reads the current attempts. Of the
	// due attempts, it sends those that are current and not pending, and returns the pending ones in
	// RetryResult.Waiting.
	//
	// It returns ErrConflict if Head is no longer the head. Nothing was sent then. After any other error, the call can
	// be repeated.
	RetryActivities(ctx context.Context, r *RetryRequest) (RetryResult, error)
	// PutPendingAttempts stores attempts as pending, or the time of the next check of their limits, in writes that also check
	// that head is the head. It then sends a timer for each check. It returns ErrConflict if head is no longer the
	// head, or if the stored value is not PendingAttemptUpdate.Was. Timers of completed writes may have been sent then. The call
	// is idempotent.
	PutPendingAttempts(ctx context.Context, instanceID string, head Head, keeps ...PendingAttemptUpdate) error
}

// WorkItems contains the methods that workers call.
type WorkItems interface {
	// DecodeWorkItems decodes the records of a work queue. It returns unreadable records separately. Pass them to
	// DeadLetter. LockedWorkItem.Cancel of each item returns, with strong consistency, whether the activity is
	// cancelled. The first call reads the cancel record for all items of the execution.
	DecodeWorkItems(ctx context.Context, records []Record) (items []LockedWorkItem, unreadable []Unreadable)
	// AckWorkItems sends the outcomes, as one message per execution, and then deletes the records of the work items
	// from their queue, except those with KeepRecord set (R14). It returns the records whose outcome was not accepted.
	// They stay in the queue and are redelivered.
	AckWorkItems(ctx context.Context, queue string, done []CompletedWorkItem) (failed []Record, err error)
	// ReadCancels reads the part of an execution's cancel record that concerns activities scheduled in segment from or
	// later, in order and with strong consistency. It contains the decisions of the turns of these segments, and all
	// open decisions. It is empty if nothing was cancelled.
	//
	// next is the segment from which a caller can continue without missing a decision. A decision can become visible
	// later than a later one, so next follows the last decision before which none is missing (Turn.CancelsAfter).
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// PollCancels is like ReadCancels at half the price, with eventual consistency. It can miss recent decisions. They
	// are at next or later, so that a later call finds them.
	PollCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// RenewWorkItemLocks extends the locks of a queue's work items to lock from now, like Poller.RenewRecords. It
	// returns one Renewal per item, in order. A Renewal has the end of the lock or reports that it is lost, and
	// reports, with strong consistency, whether the activity is cancelled. For a record whose work item was not
	// decoded, it returns only the lock. The error joins the errors of the items.
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...LockedWorkItem) ([]Renewal, error)
	// VerifyWorkItemToken decodes the token of a work item (WorkItem.Token) and returns its queue, execution, segment,
	// activity and attempt. It returns ErrInvalidToken if the token was not issued by this hub.
	VerifyWorkItemToken(ctx context.Context, token string) (WorkItem, error)
	// CompletionTokens returns the signer of completion tokens (TokenSigner.SignCompletion). A worker calls it before
	// an activity starts, and signs the token when the activity requests it.
	CompletionTokens(ctx context.Context) (*TokenSigner, error)
	// VerifyCompletionToken decodes a completion token and returns a work item with the signed fields, including InstanceID.
	// It returns a *ForeignTokenError if the token belongs to another hub, and ErrInvalidToken if it is invalid.
	VerifyCompletionToken(ctx context.Context, token string) (WorkItem, error)
	// ReadWorkItem reads the work item of an activity's first attempt from the segment that scheduled it. It returns
	// ErrNotFound if the segment does not schedule the activity, or was deleted.
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (WorkItem, error)
	// HeartbeatPending writes a heartbeat that was sent with a completion token. counted is false, and nothing is written,
	// if a later heartbeat or a heartbeat of a later attempt is stored, or if TimeOutPending ended the attempt.
	HeartbeatPending(ctx context.Context, executionID string, b PendingHeartbeat) (counted bool, err error)
	// TimeOutPending ends a pending attempt that exceeded a limit. Its later heartbeats are rejected. ended is false, and
	// nothing is written, if the stored heartbeat is not the one of beatenAt (zero means none). The call is idempotent.
	TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error)
	// PutWorkItems sends work items to their queues. They become visible after the rest of their delay
	// (WorkItem.NotBefore), or after the maximum delay of the queue. Use it to resend a work item: send it first,
	// and then delete the old record (R14).
	PutWorkItems(ctx context.Context, items ...WorkItem) error
	// PutActivityRecords writes the non-zero fields of each record and keeps the stored values of the other fields. It
	// does not write a record with OutcomeNeverStarted if another outcome is stored, or a record with a LastHeartbeatAt
	// before the stored one. Records are written separately. If only some were written, the error says so, and the
	// caller can repeat all.
	PutActivityRecords(ctx context.Context, executionID string, records ...ActivityRecord) error
	// ReadActivityRecord reads the record of an activity with strong consistency. If there is none, only ActivityID is
	// set.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (ActivityRecord, error)
	// ClaimRun makes a delivery of a work item with NeedsRunClaim the holder of the activity's run until Run.Until. If
	// another delivery holds the run, RunClaim.Held is false. The holder can repeat the call. A delivery of a later
	// attempt takes the run immediately, and a delivery of the same attempt when the run has expired. RunClaim.Cancel
	// is read with strong consistency after the run was taken, so that of two competing deliveries either one finds the
	// other's run, or both find the cancel. If CompleteRun has stored an outcome of the same attempt, the run is
	// neither taken nor renewed. If the call returns an error and Held is true, the run was taken, but its cancel could
	// not be read.
	ClaimRun(ctx context.Context, r Run) (RunClaim, error)
	// CompleteRun stores the outcome of a run before it is reported, on condition that the delivery still holds the run. A
	// later ClaimRun for the same attempt returns this outcome, and its caller reports it, so that no code of the
	// attempt runs again. It returns ErrLockLost if another delivery holds the run.
	CompleteRun(ctx context.Context, r Run, o *ActivityOutcome) error
	// ReleaseRun releases a delivery's run: it stores RunClaim.PreviousRun again, or the delivery's own run as expired. The work
	// item returns to its queue. Nothing is changed if another delivery holds the run. Abandoned stays set in later
	// RunClaim.PreviousRun values.
	ReleaseRun(ctx context.Context, r Run, leave *Run) error
	// ReadRetry reads the current attempt of an activity that has failed before, with strong consistency. If it has not
	// failed, only ActivityID is set.
	ReadRetry(ctx context.Context, executionID string, activityID int64) (ActivityRetry, error)
	// ReadSettled reads the events that an execution settled from a segment on, with strong consistency. Next equals
	// from if that segment does not exist. It returns ErrCorrupt if the segment cannot be read.
	ReadSettled(ctx context.Context, executionID string, from int64) (Settlements, error)
}

// Timers holds timers and finds instances that make no progress.
//
// The three methods that find instances yield a few at a time and store their progress, so that an interrupted search
// continues in the next call. A caller must process the yielded instances before it requests the next ones. The methods
// yield an error for items that cannot be read, and continue if possible. Concurrent searches are allowed.
type Timers interface {
	// DecodeTimers decodes the records of the timers queue. It returns unreadable records separately. Pass them to
	// DeadLetter.
	DecodeTimers(records []Record) (timers []LockedTimer, unreadable []Unreadable)
	// HoldTimers sends timers to the timers queue again. They become visible less than a second before they are due, or
	// earlier, to be held again, if they exceed the maximum delay of the provider. The call is idempotent.
	HoldTimers(ctx context.Context, timers ...Timer) error
	// PendingInstances finds instances that were due to run their first turn before the given time and did not (R11).
	// An instance is due when it is started or, if its start is delayed, when the delay ends. Each instance is found
	// again after intervals that double from two minutes to an hour.
	PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]Instance, error]
	// BlockedInstances finds instances that are blocked in another build than the one that reported last (R18). Each
	// instance is found for every new build, and for the same build again after ten minutes, twenty minutes and so on,
	// up to an hour. If there are any, it requests a report of the build from an orchestrator (ReportBuildInstanceID).
	// A build that already reported last within the past hour does not count as new.
	BlockedInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// DeletingInstances finds instances whose deletion has made no progress for two minutes. DeleteInstance completes
	// the deletion (R17).
	DeletingInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// CountAttention counts the instances that may need an operator, for the hub's metrics. It can read an index that
	// is behind. Its cost does not depend on their number.
	CountAttention(ctx context.Context) (AttentionCounts, error)
}

// Records contains operations on records that do not depend on their content.
type Records interface {
	// DeadLetter copies a record, with the error, to the dead-letter queue of its queue, so that the record can be
	// deleted.
	DeadLetter(ctx context.Context, queue string, u Unreadable) error
	// AbandonRecords makes records of a queue visible again after a delay, so that they are retried sooner than after a
	// crash (R19). It is best effort: after an error, the records become visible when their locks expire.
	AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...Record) error
	// DeleteRecords deletes processed records of a queue before the function's batch ends (R19).
	DeleteRecords(ctx context.Context, queue string, records ...Record) error
}

// The names of the queues beside the work queues, as in PERDURE_DEAD_LETTERS.
const (
	QueueInbox  = "inbox"
	QueueTimers = "timers"
)

// Unreadable is a record that cannot be decoded.
type Unreadable struct {
	Record Record
	Err    error
}

// LockedWorkItem is a work item with the record that holds its lock.
type LockedWorkItem struct {
	WorkItem

	Record Record
	// Cancel reads whether the activity is cancelled. It is nil if the item was not returned by DecodeWorkItems.
	Cancel *CancelRead
	// CancelsFrom is the first segment of the cancel record that the holder has not read (ReadCancels), or 0 if it has
	// read none.
	CancelsFrom int64
}

// CompletedWorkItem is a work item that needs no more processing.
type CompletedWorkItem struct {
	*LockedWorkItem

	// Outcome is the outcome to report. If it is nil, nothing is reported.
	Outcome *ActivityOutcome
	// KeepRecord is true if the caller does not delete the record, because an event source mapping deletes it.
	KeepRecord bool
}

// LockedTimer is a timer with the record that holds its lock.
type LockedTimer struct {
	Timer

	Record Record
}

// OutputFailure is an output that can never be sent.
type OutputFailure struct {
	// EventID is the ID of the output's event.
	EventID int64
	// Failure is the reason.
	Failure history.Failure
	// Ended is set for an activity with WaitForCancellation whose code has run or may have run, because its work item
	// was sent before or this is not the first attempt. It is one of the history.Outcome constants. It is empty if the
	// activity never started.
	Ended string
}
