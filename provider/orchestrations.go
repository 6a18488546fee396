package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
)

// Orchestrations loads an instance, commits its turns and sends their outputs. Turns use it. The records of the inbox
// are from a function's event (push) or from a Poller.
type Orchestrations interface {
	// DecodeOrchestrationItems groups inbox records by instance and keeps their order. It returns unreadable records
	// separately. Pass unreadable records to DeadLetter.
	DecodeOrchestrationItems(records []Record) (items []*OrchestrationItem, unreadable []Unreadable)
	// CreateOrchestration atomically creates the instance of a start message and its first execution. It returns the
	// instance's current execution, verified, even if an earlier call with the same start created it (R10). It returns
	// ErrAlreadyExists if another start uses the ID. In this case, pass the message to RejectStart.
	CreateOrchestration(ctx context.Context, m *InboxMessage) (*Orchestration, error)
	// ReadOrchestration reads the execution to which item's messages belong, or the execution that it continued as. It
	// returns ErrNotFound if the execution does not exist, and ErrCorrupt if it cannot be read. An eventually
	// consistent read can miss the latest segments or all segments. The result contains a bounded amount of the large
	// data of external events (documents.Budget), and references to the rest.
	ReadOrchestration(ctx context.Context, item *OrchestrationItem, c Consistency) (*Orchestration, error)
	// ReadDocument reads the document that a payload refers to, from any execution of the instance. It returns
	// ErrNotFound if the document was erased, and ErrCorrupt if the document is missing or does not match the
	// reference.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// AckOrchestrationItem commits a turn and sends its outputs. The commit is atomic. ErrConflict means that another
	// turn committed first, and that nothing of this turn was stored (R7). An error after the commit wraps
	// ErrDispatchIncomplete. In this case, let the messages be redelivered and call RedispatchOrchestration. refused
	// are the outputs that can never be sent. The next turn records them as failed (R9). Terminal statuses and Blocked
	// are always written. If the write of another status fails, the call succeeds, and a refresh is requested
	// (RefreshStatus). The provider does not retain t or t.Events.
	AckOrchestrationItem(ctx context.Context, t *Turn) (refused []OutputFailure, err error)
	// RedispatchOrchestration again sends the unsettled outputs of a verified execution, and of the executions that it
	// continues. It sends the outputs of the segments from since to the head (R4).
	RedispatchOrchestration(ctx context.Context, o *Orchestration, since RedispatchFrom) (refused []OutputFailure,
		err error)
	// RetryActivities advances activities that have a retry policy.
	//
	// For each failure of the current attempt with a RetryAt, it makes the next attempt the current attempt, on
	// condition that Head is still the head. It then sends that attempt with a delay, or with a timer (HoldTimers) if
	// the delay exceeds the limit of the queue.
	//
	// If the next attempt is already the current attempt, the failure was reported before, and the same attempt is sent
	// again. The same applies to a failure without a RetryAt if the current attempt follows its run. The verdicts
	// describe all other failures. If all verdicts are RetryExhausted, the call only reads the current attempts. It
	// sends due attempts that are current and not pending. It returns pending due attempts in RetryResult.Waiting.
	//
	// It returns ErrConflict if Head is not the head anymore. In this case, nothing was sent. After any other error,
	// the call can be repeated.
	RetryActivities(ctx context.Context, r *RetryRequest) (RetryResult, error)
	// PutPendingAttempts stores attempts as pending, or the time of the next check of their timeouts, on condition that
	// head is still the head. It then sends a timer for each check. It returns ErrConflict if head is not the head
	// anymore, or if the stored value is not PendingAttemptUpdate.Was. In this case, timers of completed writes may
	// have been sent. The call is idempotent.
	PutPendingAttempts(ctx context.Context, instanceID string, head Head, keeps ...PendingAttemptUpdate) error
	// RefreshStatus writes the instance's status from its history, for a wake that requests a refresh (Message.Refresh)
	// or has no content. It repairs the status if an earlier turn could not write it. It never overwrites the status of
	// a later turn or of an instance that has ended (R9). If it fails, it has requested a later refresh, and the caller
	// only logs the error.
	RefreshStatus(ctx context.Context, wake *Message) error
	// TerminateCorrupt ends an instance whose history cannot be read (ErrCorrupt), as the message requests. It writes a
	// terminal event after the readable part of the history, reports the end to the parent and cancels the activities.
	// It does not cancel timers and children, because they are not known. The call is idempotent. It returns
	// ErrConflict if a turn was committed in the meantime.
	TerminateCorrupt(ctx context.Context, m *InboxMessage) error
	// BlockInstance sets an instance's status to blocked by a build because its history cannot be read. It does nothing
	// if the execution is not the instance's current one, or the instance has ended.
	BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error
	// ReadInterruption reads, with strong consistency, the last time at which EnqueueForOrchestrator sent a message
	// that interrupts an instance (Message.Interrupts). The time is zero if no such message was sent recently. An
	// invocation that runs inline activities uses the time as a hint to release the instance (R20).
	ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error)
	// PutBuild stores the orchestrations and activities of a build, and records the build as the last one that
	// reported. A provider may ignore a report that equals the build's last one if that is younger than
	// BuildReportInterval.
	PutBuild(ctx context.Context, b Build) error
	// ReadBuild reads the last report of a build with strong consistency. It returns ErrNotFound if the build has never
	// reported.
	ReadBuild(ctx context.Context, id string) (Build, error)
}

// Rejections rejects messages that no instance accepts, and stores the results of updates. Turns use it.
type Rejections interface {
	// RejectStart records that a start was rejected because its ID is in use, so that the start can never succeed
	// later. It then reports the rejection to the waiting parent (R10).
	RejectStart(ctx context.Context, m *InboxMessage) error
	// RejectCancel processes a parent's cancel for an ID without an instance. It ensures that the cancelled start can
	// never succeed, and then reports to the parent that the child is cancelled (R16). It returns ErrConflict if the
	// instance now exists.
	RejectCancel(ctx context.Context, m *InboxMessage) error
	// RejectEvents rejects events and updates that another instance sent (MessageEventSent, MessageUpdateSent) to an
	// instance that has ended or does not exist. It ensures that no copy of the messages ever reaches an instance with
	// that ID. It then reports to the sender that they were not delivered (R24). All messages must have the same
	// instance ID. over is the execution that has ended, or empty if no instance exists. RejectEvents returns
	// ErrConflict if another execution or instance now exists. For events that were rejected earlier, it only sends the
	// report.
	RejectEvents(ctx context.Context, over string, ms ...*InboxMessage) error
	// ReadRejectedEvents reads, with strong consistency, the events of other instances that were rejected for an ID.
	ReadRejectedEvents(ctx context.Context, instanceID string) (RejectedEvents, error)
	// PutUpdateResults writes the results of updates of one incarnation of an instance, as a dispatch does (R27). It
	// does not overwrite an existing result of that incarnation, unless the outcome of that result is
	// UpdateResultExpired. Nothing is written while the instance is being deleted. The call is idempotent.
	PutUpdateResults(ctx context.Context, responses ...UpdateResult) error
}

// OutputFailure is an output that can never be sent.
type OutputFailure struct {
	// EventID is the ID of the event that caused the output.
	EventID int64
	// Failure is the reason.
	Failure history.Failure
	// Ended is one of the history.Outcome constants. It is set for an activity with WaitForCancellation whose code may
	// have run, because its work item was sent before or this is not the first attempt. It is empty if the activity
	// never started.
	Ended string
}
