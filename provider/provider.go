package provider

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
)

// Provider stores a task hub and carries its work. All methods are safe for concurrent use, and end early when ctx does.
// A failed call returns an *Error that says whether it is worth repeating, unless a sentinel says more.
type Provider interface {
	Instances
	Orchestrations
	WorkItems
	Workers
	Timers
	Retentions
	Jobs
	Poison
	Records
}

// Instances is what clients need.
type Instances interface {
	// StartOrchestration creates the instance and its first execution atomically, then wakes it: at once, or at StartAt.
	// Repeating it with the same StartID changes nothing and wakes it again (R11). An id that another start has taken, running or over, is
	// ErrAlreadyExists; a name in no deployed build is ErrUnknownOrchestration.
	StartOrchestration(ctx context.Context, s Start) (Instance, error)
	// EnqueueForOrchestrator puts messages into the inboxes of their instances, in order for each instance. A message may
	// arrive twice (a repeat may then stand behind later ones), never be lost. When only some were accepted, the error says so and repeating all is harmless.
	EnqueueForOrchestrator(ctx context.Context, ms ...Message) error
	// ReadInstance reads what is known of an instance, strongly consistent. ErrNotFound when there is none.
	ReadInstance(ctx context.Context, instanceID string) (Instance, error)
	// ReadEnd reads the terminal event of an execution: its output or error. ErrNotFound when it has not ended.
	ReadEnd(ctx context.Context, executionID string) (history.Event, error)
	// ReadHistory reads the events of an instance's execution with ids above after, in order, and holds no more of them than a few turns'.
	// ErrNotFound when the instance has no such execution; ErrCorrupt where one that cannot be read begins to be so.
	// Where history refers to documents they are put in, up to ShownDocuments an event; beyond, and where they are erased, the references stay.
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	// ListExecutions goes through the executions of an instance, the current one first. ErrNotFound when there is no such instance.
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[Execution, error]
	// ListInstances reads a page of instances, newest first, from an index that may be a second behind. A page may be short, or empty, and not the last.
	// What is found by an index may lack what that does not hold: the StartID, and of what is blocked why.
	ListInstances(ctx context.Context, q Query) (Page, error)
	// ReadActivityRecords goes through what workers have left of the activities of an execution, by their ids, strongly consistent.
	// There is none for most, and none at all for an execution that nobody knows.
	ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[ActivityRecord, error]
	// ReadRetries goes through the activities of an execution that have failed and were to be tried again, by their ids, strongly
	// consistent. One that has ended since is among them: history tells.
	ReadRetries(ctx context.Context, executionID string) iter.Seq2[ActivityRetry, error]
	// DeleteInstance deletes an instance that is over, or with force any: that one ends first, its activities, timers and children
	// are cancelled, and its parent is told. What is left says which starts may never happen again, and that an event of this life is
	// not for the next. It is repeated until it is done: a call goes on where the last one stopped, and meanwhile the instance is
	// StatusDeleting. ErrNotFound when there is none, or none any more; ErrNotTerminal when it is not over and force is not given (R17).
	DeleteInstance(ctx context.Context, instanceID string, force bool) error
	// PutBuild makes known what a build can run, and that it is the one that reported last.
	PutBuild(ctx context.Context, b Build) error
}

// Orchestrations is what turns need. Records come from the inbox, through a function's event (push) or by Polling.
type Orchestrations interface {
	// AdoptOrchestrationItems sorts inbox records by instance, keeping their order. Records that cannot be read are
	// returned apart: they are for DeadLetter.
	AdoptOrchestrationItems(records []Record) (items []*OrchestrationItem, unreadable []Unreadable)
	// CreateOrchestration creates the instance that a start message asks for, and its first execution, atomically, and
	// returns the instance's current execution, verified: of what the same start created before, too (R10). ErrAlreadyExists
	// when the id is another start's: that is for RefuseStart.
	CreateOrchestration(ctx context.Context, m *InboxMessage) (*Orchestration, error)
	// RefuseStart remembers a start that came to an id in use, so that it can never start later, and then tells the parent
	// that waits for it (R10).
	RefuseStart(ctx context.Context, m *InboxMessage) error
	// RefuseCancel deals with a parent's cancel that came to an id nobody has: the start that it is for can never succeed from
	// now on, and then the parent is told that it is cancelled (R16). ErrConflict when there is such an instance by now.
	RefuseCancel(ctx context.Context, m *InboxMessage) error
	// ReadOrchestration reads the execution that item's messages are for, or the one that it continued as. ErrNotFound when there is none, ErrCorrupt
	// when it cannot be read. An eventual read may miss the latest segments, or all of them. Of large data of external events it holds
	// but so much (Loading); of the rest it has references.
	ReadOrchestration(ctx context.Context, item *OrchestrationItem, c Consistency) (*Orchestration, error)
	// ReadDocument reads the document that a payload refers to, in whichever execution of the instance it lies. ErrNotFound when it has
	// been erased, ErrCorrupt when another document lies there, or none.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// AckOrchestrationItem commits a turn and sends what it caused. Committing is atomic and happens once: ErrConflict
	// means somebody else's segment is in its place, and nothing of this turn was left behind (R7). Sending follows; an
	// error after the commit leaves the messages to be delivered again, and Redispatch to finish. Outputs that can never
	// be sent are returned, to be recorded as failed in a next turn (R9). A status that is neither an end nor
	// Blocked is written at best: where that fails the turn is done all the same, and a refresh is asked for (RefreshStatus).
	AckOrchestrationItem(ctx context.Context, t *Turn) (refused []OutputFailure, err error)
	// TerminateDamaged ends an instance whose history cannot be read, because a message asks for it: what can be had of the history
	// says where its end belongs. Its parent is told, and its activities are cancelled; of its timers and children nobody knows. It
	// is for ErrCorrupt alone, and harmless when repeated. ErrConflict when a turn was committed meanwhile.
	TerminateDamaged(ctx context.Context, m *InboxMessage) error
	// RefreshStatus writes what history says of the instance, for a wake that asks for it (Message.Refresh) or has nothing else to
	// bring: whatever an earlier turn could not write is there then. It never undoes what a later turn has written, and leaves
	// alone how an instance ended: that is for its last turn (R9). Where it fails it has asked for another refresh, later; the error
	// is for the log.
	RefreshStatus(ctx context.Context, wake *Message) error
	// RedispatchOrchestration sends again what a verified o caused from the segment that consumed the message at from up
	// to the head, and is not settled (R4).
	RedispatchOrchestration(ctx context.Context, o *Orchestration, from Position) (refused []OutputFailure, err error)
	// RetryActivities drives activities with a retry policy on. Of each failure that is of the activity's current attempt, and has a
	// RetryAt, it makes the next attempt the current one, in a write that also checks that Head is the head, and then sends it: with a
	// delay, or by way of a timer that HoldTimers holds, where a queue cannot delay for so long. A failure whose next attempt is the
	// current one already was told before: the same attempt is sent again. What else it is told of, the verdicts say; where all of them are
	// RetryOver it looks at nothing but the current attempts. A failure without a RetryAt whose run has led to the current attempt has that sent again, too. Of what is due it sends what is the current attempt. ErrConflict when Head is not
	// the head any more: nothing was sent then. After another error repeating is harmless.
	RetryActivities(ctx context.Context, r *Retries) (Retried, error)
}

// WorkItems is what workers need.
type WorkItems interface {
	// AdoptWorkItems reads the records of a work queue. Those that cannot be read are for DeadLetter. Each item answers whether its activity
	// is cancelled (LockedWorkItem.Cancel), strongly consistent, as of after it was received: nothing is called before somebody asks, and
	// then once for all items of an execution.
	AdoptWorkItems(ctx context.Context, records []Record) (items []LockedWorkItem, unreadable []Unreadable)
	// AckWorkItems sends the outcomes, those of one execution as one message, and then deletes the work items' records from
	// their queue (R14). It returns the records whose outcome was not accepted: they stay, to be delivered again.
	AckWorkItems(ctx context.Context, queue string, done []CompletedWorkItem) (failed []Record, err error)
	// ReadCancels reads the cancel record of an execution as far as it concerns activities that were scheduled in segment from, or in a
	// later one: what the turns of these segments have decided, and what is open, strongly consistent and in order. It is empty where
	// nothing was cancelled. Whoever has read so far misses nothing by reading from segment next the next time: it is from where there
	// may be more, or from a little before.
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// RenewWorkItemLocks extends the locks of a queue's work items to so long from now, as Polling.RenewRecords does, and answers
	// for each, in their order, whether it is lost, and whether its activity is cancelled, strongly consistent; of a record
	// alone, whose work item nobody has read yet, only the former. An error says nothing of a lock that did not come back as lost, and of
	// a cancel that did not come back as requested.
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...LockedWorkItem) ([]Renewal, error)
	// PutWorkItems sends work items to their queues, to be seen again after the delay they have left (WorkItem.NotBefore), or
	// after the longest that a queue has. It serves those that are sent anew: send, then delete (R14).
	PutWorkItems(ctx context.Context, items ...WorkItem) error
	// PutActivityRecords leaves what is set in each record, and keeps what was left before of the rest. Two kinds of records are
	// not written at all where something better is known: one with EndNeverStarted where there is an end (a work item may come
	// again after its activity was stopped), and one with a BeatenAt before that which is there (another worker has it now).
	// Each record is written by itself; when only some were, the error says so and repeating all is harmless.
	PutActivityRecords(ctx context.Context, executionID string, records ...ActivityRecord) error
	// ReadActivityRecord reads what was left of an activity, strongly consistent: its ActivityID alone where that is nothing.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (ActivityRecord, error)
	// TakeRun makes a delivery of a work item with WaitCancel the one that runs its activity, until Run.Until, unless another one is: then the
	// answer is not Held. A delivery has it again as often as it asks; it goes over to a delivery of a later attempt, and to one of the
	// same attempt when it has run out. The answer's Cancel is read after the run was taken, strongly consistent: of two deliveries that
	// ask, one finds the other's run, or both the activity's cancel.
	TakeRun(ctx context.Context, r Run) (Taken, error)
	// EndRun keeps how a run ended, on the condition that it is still the delivery's: before that is told. Whoever asks for a run of the same attempt
	// then is given that, and tells it: of what may be told no code runs again. ErrLockLost where the run is another's by now.
	EndRun(ctx context.Context, r Run, o *ActivityOutcome) error
	// LeaveRun puts what a delivery has found (Taken.Before), or its own run, run out, into the place of its run: the work item goes back to its
	// queue. It changes nothing where the run is another's by now.
	LeaveRun(ctx context.Context, r Run, leave *Run) error
	// ReadRetry reads which attempt an activity is at that has failed before, strongly consistent: its ActivityID alone where it has not.
	ReadRetry(ctx context.Context, executionID string, activityID int64) (ActivityRetry, error)
	// ReadSettled reads what an execution has settled from a segment on, strongly consistent. Next is from where that segment is not
	// there: yet, or not any more. ErrCorrupt when it cannot be read.
	ReadSettled(ctx context.Context, executionID string, from int64) (Settlements, error)
}

// Timers is what keeps time, and finds what has stood still for too long.
//
// The three that find instances yield some at a time; who asks for the next is done with those before. They note how far they have come as
// they go, so that a look that is cut short is not for nothing: the next one goes on there. What cannot be read is an error among
// the others, after which they go on as far as they can. Two looks at once are harmless.
type Timers interface {
	// AdoptTimers reads the records of the timers queue. Those that cannot be read are for DeadLetter.
	AdoptTimers(records []Record) (timers []LockedTimer, unreadable []Unreadable)
	// HoldTimers brings timers back to the timers queue, to be seen again when they are nearly due: early by less than a
	// second; or earlier when they are further away than can be told at once, to be held again. Repeating it is harmless.
	HoldTimers(ctx context.Context, timers ...Timer) error
	// PendingInstances finds instances that should have had their first turn before the given time and had none (R11): those that were started before
	// it, or are to begin before it where their start is delayed. Each is found again and again, after twice as long each time, from two minutes to an hour.
	PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]Instance, error]
	// BlockedInstances finds instances that are blocked in another build than the one that reported last (R18): again for each build, and for the
	// same after ten minutes, twenty, up to an hour.
	BlockedInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// DeletingInstances finds instances whose deletion has made no progress for two minutes: DeleteInstance finishes it (R17).
	DeletingInstances(ctx context.Context) iter.Seq2[[]Instance, error]
}

// Records is what is done with a record whatever it holds.
type Records interface {
	// DeadLetter copies a record to the dead letters of its queue with what was wrong, so that it may be deleted.
	DeadLetter(ctx context.Context, queue string, u Unreadable) error
	// AbandonRecords makes records of a queue visible again after a delay, so that a handled error is tried again sooner
	// than a crash would be (R19). At best: an error changes nothing but the delay.
	AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...Record) error
	// DeleteRecords deletes records of a queue that are done with, before the function's batch is (R19).
	DeleteRecords(ctx context.Context, queue string, records ...Record) error
}

// The names of the queues beside the work queues, as in PERDURE_DEAD_LETTERS.
const (
	QueueInbox  = "inbox"
	QueueTimers = "timers"
)

// Unreadable is a record that cannot be read, and why.
type Unreadable struct {
	Record Record
	Err    error
}

// LockedWorkItem is a work item and the record that holds its lock.
type LockedWorkItem struct {
	WorkItem

	Record Record
	// Cancel answers whether the activity is cancelled; nil of an item that was not adopted.
	Cancel *CancelRead
	// CancelsFrom is the segment from which on its holder has not read the cancel record (ReadCancels); 0: he has read none of it.
	CancelsFrom int64
}

// CompletedWorkItem is a work item that is over and, unless nothing is to be told, how it ended.
type CompletedWorkItem struct {
	LockedWorkItem

	Outcome *ActivityOutcome
}

// LockedTimer is a timer and the record that holds its lock.
type LockedTimer struct {
	Timer

	Record Record
}

// OutputFailure is an output that can never be sent: its event's id, and why.
type OutputFailure struct {
	EventID int64
	Failure history.Failure
}
