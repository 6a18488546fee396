package provider

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
)

// Provider stores a task hub and carries its work. All methods are safe for concurrent use, and end early when ctx
// ends. A failed call returns an *Error that says whether a repetition may succeed, unless it returns a more precise
// sentinel.
type Provider interface {
	Instances
	Orchestrations
	WorkItems
	Workers
	Timers
	Retentions
	Jobs
	Schedules
	Poison
	Records
}

// Instances is what clients need.
type Instances interface {
	// StartOrchestration creates the instance and its first execution atomically, then wakes it: at once, or at
	// StartAt. Repeating it with the same StartID changes nothing and wakes the instance again (R11). It returns
	// ErrAlreadyExists for an id that another start has taken, running or over, with the instance that has it; ErrPurged where this start has had its life
	// of the id, whatever has the id now; and ErrUnknownOrchestration for a name in no deployed build, before it looks at the id.
	StartOrchestration(ctx context.Context, s Start) (Instance, error)
	// EnqueueForOrchestrator puts messages into the inboxes of their instances, in order for each instance. A message
	// may arrive twice (the repeat possibly behind later messages), but is never lost. When only some were accepted,
	// the error says so, and repeating all is harmless. Of those that interrupt (Message.Interrupts) it notes before, with
	// best effort, that they are on their way, for ReadInterruption.
	EnqueueForOrchestrator(ctx context.Context, ms ...Message) error
	// ReadInstance reads what is known of an instance, strongly consistent. It returns ErrNotFound when there is none.
	ReadInstance(ctx context.Context, instanceID string) (Instance, error)
	// ReadEnd reads the terminal event of an execution: its output or error. It returns ErrNotFound when the execution
	// has not ended.
	ReadEnd(ctx context.Context, executionID string) (history.Event, error)
	// ReadHistory reads the events of an instance's execution with ids above after, in order, and holds no more of them
	// than those of a few turns. It returns ErrNotFound when the instance has no such execution, and ErrCorrupt at the
	// first event of an execution that cannot be read. It replaces references to documents by the documents, up to
	// ShownDocuments an event; beyond that, and where documents are erased, the references stay.
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	// ListExecutions yields the executions of an instance, the current one first. It returns ErrNotFound when there is
	// no such instance.
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[Execution, error]
	// ListInstances reads a page of instances, newest first, from an index that may be a second behind. A page may be
	// short or empty without being the last. An instance found by an index may lack what the index does not hold: the
	// StartID, and why it is blocked.
	ListInstances(ctx context.Context, q Query) (Page, error)
	// ReadActivityRecords yields what workers have stored of the activities of an execution, by activity id, strongly
	// consistent. Most activities have no record, and an unknown execution has none at all.
	ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[ActivityRecord, error]
	// ReadRetries yields the activities of an execution that have failed and were to be tried again, by activity id,
	// strongly consistent. Activities that have ended since are among them: history decides.
	ReadRetries(ctx context.Context, executionID string) iter.Seq2[ActivityRetry, error]
	// DeleteInstance deletes an instance that is over or, with force, any: one that is not over ends first, its
	// activities, timers and children are cancelled, and its parent receives its outcome. The deletion leaves which
	// starts may never happen again, and that an event for this life is not for the next one. It is repeated until it
	// is done: each call goes on where the last one stopped, and meanwhile the status is StatusDeleting. It returns
	// ErrNotFound when there is no instance, or none any more, and ErrNotTerminal when the instance is not over and
	// force is not set (R17).
	DeleteInstance(ctx context.Context, instanceID string, force bool) error
	// ReadUpdate reads the answer to an update, strongly consistent. It returns ErrNotFound where there is none: not yet,
	// or not any more, after AnswerLife. It may be about an earlier life of the id (UpdateAnswer.StartID).
	ReadUpdate(ctx context.Context, instanceID, updateID string) (UpdateAnswer, error)
	// PutBuild stores what a build can run, and that it is the build that reported last.
	PutBuild(ctx context.Context, b Build) error
	// ReadBuild reads what a build has reported, strongly consistent, since when it is known, and when it reported last. It returns
	// ErrNotFound where it never has.
	ReadBuild(ctx context.Context, id string) (Build, error)
}

// Orchestrations is what turns need. Records come from the inbox, through a function's event (push) or by Polling.
type Orchestrations interface {
	// AdoptOrchestrationItems groups inbox records by instance, keeping their order. It returns records that cannot be
	// read separately: they are for DeadLetter.
	AdoptOrchestrationItems(records []Record) (items []*OrchestrationItem, unreadable []Unreadable)
	// CreateOrchestration creates the instance that a start message asks for, and its first execution, atomically, and
	// returns the instance's current execution, verified, also where the same start has created it before (R10). It
	// returns ErrAlreadyExists when another start has the id: the message is then for RefuseStart.
	CreateOrchestration(ctx context.Context, m *InboxMessage) (*Orchestration, error)
	// RefuseStart records a start that came to an id in use, so that it can never start later, and then reports that to
	// the parent that waits for it (R10).
	RefuseStart(ctx context.Context, m *InboxMessage) error
	// RefuseCancel handles a parent's cancel for an id without an instance: it makes sure that the start which the
	// cancel is for can never succeed, and then reports to the parent that it is cancelled (R16). It returns
	// ErrConflict when such an instance exists by now.
	RefuseCancel(ctx context.Context, m *InboxMessage) error
	// RefuseEvents handles events and updates that another instance has sent (MessageEventSent, MessageUpdateSent) to one that is over, or is not
	// there: it makes sure that no copy of them ever reaches an instance of that id, and then reports to their sender that
	// they were not delivered (R24). The messages are for one id; over is the execution that is over, empty where there is
	// no instance. It returns ErrConflict when there is another by now. Events that were refused before are only answered.
	RefuseEvents(ctx context.Context, over string, ms ...*InboxMessage) error
	// RefusedEvents reads, strongly consistent, which events of other instances have not reached an id.
	RefusedEvents(ctx context.Context, instanceID string) (RefusedEvents, error)
	// ReadOrchestration reads the execution that item's messages are for, or the one that it continued as. It returns
	// ErrNotFound when there is none, and ErrCorrupt when it cannot be read. An eventual read may miss the latest
	// segments, or all of them. It holds a bounded amount of the large data of external events (Loading), and
	// references to the rest.
	ReadOrchestration(ctx context.Context, item *OrchestrationItem, c Consistency) (*Orchestration, error)
	// ReadDocument reads the document that a payload refers to, in whichever execution of the instance it is stored. It
	// returns ErrNotFound when the document was erased, and ErrCorrupt when another document is in its place, or none.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// AnswerUpdates writes answers to updates of one life of an instance, as a dispatch does (R27). An answer of that life
	// that is there stays, unless it says that the update is forgotten. Nothing is written once the instance is being
	// deleted. Repeating it is harmless.
	AnswerUpdates(ctx context.Context, answers ...UpdateAnswer) error
	// AckOrchestrationItem commits a turn and sends what it caused. Committing is atomic and happens once: ErrConflict
	// means that another turn's segment is in its place, and nothing of this turn was stored (R7). Sending follows; an
	// error after the commit is an ErrUnsent, and leaves the messages to be delivered again, and RedispatchOrchestration to finish. It
	// returns the outputs that can never be sent, to be recorded as failed in a next turn (R9). A status that is
	// neither an end nor Blocked is written with best effort: where that fails, the turn is done anyway, and a refresh
	// is requested (RefreshStatus). The provider keeps neither t nor t.Events, whose memory the caller uses again.
	AckOrchestrationItem(ctx context.Context, t *Turn) (refused []OutputFailure, err error)
	// TerminateDamaged ends an instance whose history cannot be read, because a message asks for it: the readable part
	// of the history decides where its end is written. It reports the end to the parent and cancels the activities; its
	// timers and children are not known. It is for ErrCorrupt alone, and harmless when repeated. It returns ErrConflict
	// when a turn was committed meanwhile.
	TerminateDamaged(ctx context.Context, m *InboxMessage) error
	// ReadInterruption reads, strongly consistent, when a message that interrupts (Message.Interrupts) was last sent to an
	// instance by EnqueueForOrchestrator; zero where none was, or not lately. It is for an invocation that holds the
	// instance's messages, and runs inline activities, and says no more than that it may be time to make way (R20).
	ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error)
	// RefreshStatus writes the instance's status from history, for a wake that asks for it (Message.Refresh) or carries
	// nothing else: that makes up for whatever an earlier turn could not write. It never reverts what a later turn has
	// written, and leaves alone how an instance ended: that is for its last turn (R9). Where it fails it has requested
	// another, later refresh; the error is for the log.
	RefreshStatus(ctx context.Context, wake *Message) error
	// RedispatchOrchestration sends again the unsettled outputs of a verified o, and of the executions that it continues, of the
	// segments that since says, up to the head (R4).
	RedispatchOrchestration(ctx context.Context, o *Orchestration, since Since) (refused []OutputFailure, err error)
	// RetryActivities moves activities with a retry policy on.
	//
	// For each failure that is of the activity's current attempt and has a RetryAt, it makes the next attempt the
	// current one, in a write that also checks that Head is the head, and then sends that attempt: with a delay, or by
	// a timer that HoldTimers holds, where a queue cannot delay that long.
	//
	// A failure whose next attempt already is the current one was reported before: the same attempt is sent again. So
	// is the current attempt where the run of a failure without a RetryAt has led to it. The verdicts describe all
	// other failures; where all verdicts are RetryOver, only the current attempts are read. Of the due attempts it
	// sends those that are current, unless they are pending: those it returns (Retried.Waiting).
	//
	// It returns ErrConflict when Head is not the head any more; nothing was then sent. After another error repeating
	// is harmless.
	RetryActivities(ctx context.Context, r *Retries) (Retried, error)
	// KeepPending keeps attempts as pending, or sets the next look at their limits, in writes that also check that head is
	// the head, and then sends a timer for each next look. It returns ErrConflict where head is not the head any more or
	// another value than PendingKeep.Was is stored; timers of writes that were made may have been sent then. Repeating it
	// is harmless.
	KeepPending(ctx context.Context, instanceID string, head Head, keeps ...PendingKeep) error
}

// WorkItems is what workers need.
type WorkItems interface {
	// AdoptWorkItems reads the records of a work queue. Those that cannot be read are for DeadLetter. Each item answers
	// whether its activity is cancelled (LockedWorkItem.Cancel), strongly consistent, as of a moment after it was
	// received: the first answer that is asked for causes one read for all items of an execution.
	AdoptWorkItems(ctx context.Context, records []Record) (items []LockedWorkItem, unreadable []Unreadable)
	// AckWorkItems sends the outcomes, those of one execution as one message, and then deletes the work items' records
	// from their queue, but those that are Left (R14). It returns the records whose outcome was not accepted: they stay, and are delivered
	// again.
	AckWorkItems(ctx context.Context, queue string, done []CompletedWorkItem) (failed []Record, err error)
	// ReadCancels reads, strongly consistent and in order, the part of an execution's cancel record that concerns
	// activities scheduled in segment from or later: what the turns of these segments have decided, and all open
	// decisions. It is empty where nothing was cancelled.
	//
	// A caller that goes on from segment next misses nothing. next is right behind the last decision before which none
	// is missing (Turn.CancelsAfter), since a decision may become visible later than one made after it.
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// PollCancels is ReadCancels at half the price: it may miss what was decided lately. What it has not read is behind next, so that a later
	// call finds it; nothing follows from what it does not return.
	PollCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// RenewWorkItemLocks extends the locks of a queue's work items to lock from now, as Polling.RenewRecords does. It
	// returns for each item, in their order, until when it is locked or whether it is lost, and whether its activity is
	// cancelled, strongly consistent. For a record alone, whose work item was not read yet, it returns the lock only.
	// The error joins those of the items.
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...LockedWorkItem) ([]Renewal, error)
	// OpenWorkItem reads the token of a work item (WorkItem.Token): its queue, execution, segment, activity and attempt
	// as they were when it was sent. It returns ErrToken where the text is no token of this hub.
	OpenWorkItem(ctx context.Context, token string) (WorkItem, error)
	// CompletionTokens returns what makes the tokens by which whoever holds one completes an attempt from outside
	// (Tokens.SignCompletion): a worker has it before an activity begins, and makes the token when it is asked for.
	CompletionTokens(ctx context.Context) (*Tokens, error)
	// OpenCompletion reads such a token: a work item with the fields that are signed, InstanceID among them. The error is a
	// *ForeignTokenError where the token names another hub, and ErrToken where it is none otherwise.
	OpenCompletion(ctx context.Context, token string) (WorkItem, error)
	// ReadWorkItem reads the work item of an activity's first attempt from the segment that scheduled it. It returns
	// ErrNotFound where that schedules no such activity, or is deleted.
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (WorkItem, error)
	// BeatPending writes a heartbeat that has come with a token. counted is false where a later heartbeat or one of a later
	// attempt is stored, or EndPending has ended the attempt: nothing is written then.
	BeatPending(ctx context.Context, executionID string, b PendingBeat) (counted bool, err error)
	// EndPending ends a pending attempt for its limits: no heartbeat of it is taken any more. ended is false where another
	// heartbeat than that of beatenAt (zero: none) is stored by now; nothing is written then. It is true again for an
	// attempt that was ended so before.
	EndPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error)
	// PutWorkItems sends work items to their queues, visible after the delay they have left (WorkItem.NotBefore), or
	// after the longest delay that a queue has. It serves work items that are sent anew: they are sent first, then the
	// old record is deleted (R14).
	PutWorkItems(ctx context.Context, items ...WorkItem) error
	// PutActivityRecords writes the fields that are set in each record, and keeps the stored values of the others. Two
	// kinds of records are not written where something better is stored: one with EndNeverStarted where there is an end
	// (a work item may be delivered again after its activity was stopped), and one with a BeatenAt before the stored
	// one (another worker has the activity by now). Each record is written separately; when only some were, the error
	// says so and repeating all is harmless.
	PutActivityRecords(ctx context.Context, executionID string, records ...ActivityRecord) error
	// ReadActivityRecord reads what is stored of an activity, strongly consistent; only the ActivityID is set where
	// that is nothing.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (ActivityRecord, error)
	// TakeRun makes a delivery of a work item that TakesRun the one that runs its activity, until Run.Until, unless
	// another delivery is: the answer is then not Held. A delivery that has the run gets it again as often as it asks.
	// The run passes to a delivery of a later attempt at once, and to one of the same attempt when it has expired. The
	// answer's Cancel is read after the run was taken, strongly consistent: of two deliveries that ask, either one
	// finds the other's run, or both find the activity's cancel. A run in which EndRun has stored an outcome of the same
	// attempt is not taken, nor renewed. An error with Held says that the run was taken, and its Cancel not read.
	TakeRun(ctx context.Context, r Run) (Taken, error)
	// EndRun stores how a run ended, before that is reported, on the condition that the run is still the delivery's. A
	// later TakeRun for the same attempt returns this outcome, and its caller reports it: once an outcome may have been
	// reported, no code of the attempt runs again. It returns ErrLockLost where another delivery has the run by now.
	EndRun(ctx context.Context, r Run, o *ActivityOutcome) error
	// LeaveRun replaces a delivery's run by what it had found (Taken.Before), or by its own run, expired: the work item
	// goes back to its queue. It changes nothing where another delivery has the run by now. A run that is left as
	// GivenUp stays so: later answers report it in Taken.Before.
	LeaveRun(ctx context.Context, r Run, leave *Run) error
	// ReadRetry reads the current attempt of an activity that has failed before, strongly consistent; only the
	// ActivityID is set where it has not.
	ReadRetry(ctx context.Context, executionID string, activityID int64) (ActivityRetry, error)
	// ReadSettled reads what an execution has settled from a segment on, strongly consistent. Next equals from where
	// that segment does not exist: not yet, or not any more. It returns ErrCorrupt when the segment cannot be read.
	ReadSettled(ctx context.Context, executionID string, from int64) (Settlements, error)
}

// Timers keeps time, and finds instances that have stood still for too long.
//
// The three methods that find instances yield some at a time; a caller that asks for the next has finished with the
// ones before. They store their progress as they go, so that a search which is cut short is not in vain: the next one
// goes on there. They yield an error for what cannot be read, and go on after it as far as they can. Two searches at
// once are harmless.
type Timers interface {
	// AdoptTimers reads the records of the timers queue. Those that cannot be read are for DeadLetter.
	AdoptTimers(records []Record) (timers []LockedTimer, unreadable []Unreadable)
	// HoldTimers sends timers back to the timers queue, visible again when they are nearly due: early by less than a
	// second, or earlier when they are further away than the provider can hold at once, to be held again. Repeating it
	// is harmless.
	HoldTimers(ctx context.Context, timers ...Timer) error
	// PendingInstances finds instances that should have had their first turn before the given time and had none (R11):
	// those that were started before it or, where their start is delayed, are to begin before it. Each is found again
	// and again, after intervals that double from two minutes to an hour.
	PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]Instance, error]
	// BlockedInstances finds instances that are blocked in another build than the one that reported last (R18). Each is
	// found again for every new build, and for the same build after ten minutes, twenty, up to an hour. Where any is
	// blocked, an orchestrator is asked to report its build (ReportBuild). A build that was the last to report within the
	// past hour is not new: where builds report in turn, they do not have each instance found at each call.
	BlockedInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// DeletingInstances finds instances whose deletion has made no progress for two minutes: DeleteInstance finishes it
	// (R17).
	DeletingInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// CountAttention counts the instances that may need a person, for the metrics of the hub. It may read an index that
	// is behind, and costs the same however many there are.
	CountAttention(ctx context.Context) (Attention, error)
}

// Records is what is done with a record whatever it contains.
type Records interface {
	// DeadLetter copies a record to the dead letters of its queue with the error, so that it may be deleted.
	DeadLetter(ctx context.Context, queue string, u Unreadable) error
	// AbandonRecords makes records of a queue visible again after a delay, so that a handled error is tried again
	// sooner than a crash would be (R19). It is best effort: an error affects only the delay.
	AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...Record) error
	// DeleteRecords deletes records of a queue that are finished, before the function's batch is (R19).
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
	// Cancel answers whether the activity is cancelled; nil in an item that was not adopted.
	Cancel *CancelRead
	// CancelsFrom is the first segment of the cancel record that the holder has not read (ReadCancels); 0 where it has
	// read none.
	CancelsFrom int64
}

// CompletedWorkItem is a work item that is over and, unless nothing is to be reported, how it ended.
type CompletedWorkItem struct {
	*LockedWorkItem

	Outcome *ActivityOutcome
	// Left is that its record is not deleted: whoever has handed it over, as a mapping does, deletes it in a moment.
	Left bool
}

// LockedTimer is a timer and the record that holds its lock.
type LockedTimer struct {
	Timer

	Record Record
}

// OutputFailure is an output that can never be sent: its event's id, and the error.
type OutputFailure struct {
	EventID int64
	Failure history.Failure
	// Ended is set for an activity that is waited for when it is cancelled, where some of its code has run or may have
	// run: the work item was sent before, or this is not the first attempt. It is how the activity ended, one of
	// history.EndXxx. Empty: the activity never began.
	Ended string
}
