package provider

import (
	"context"
	"time"
)

// WorkItems decodes work items, extends their locks while their activities run, and reports outcomes. Workers use it.
type WorkItems interface {
	// DecodeWorkItems decodes the records of a work queue. It returns unreadable records separately. Pass unreadable
	// records to DeadLetter. LockedWorkItem.Cancel of each item reads the cancellation of the activity with strong
	// consistency. Its first call reads the cancel record for all items of the execution.
	DecodeWorkItems(ctx context.Context, records []Record) (items []LockedWorkItem, unreadable []Unreadable)
	// AckWorkItems sends the outcomes, as one message per execution. It then deletes the records of the work items from
	// their queue, except records with KeepRecord (R14). It returns the records whose outcome was not accepted. These
	// records stay in the queue and are redelivered.
	AckWorkItems(ctx context.Context, queue string, done []CompletedWorkItem) (failed []Record, err error)
	// PutWorkItems sends work items to their queues. They become visible after the rest of their delay
	// (WorkItem.NotBefore), or after the maximum delay of the queue. To resend a work item, call PutWorkItems before
	// you delete the old record (R14).
	PutWorkItems(ctx context.Context, items ...WorkItem) error
	// RenewWorkItemLocks extends the locks of a queue's work items like Poller.RenewRecords. It returns one Renewal per
	// item, in order. Each Renewal reports the end of the lock or its loss. It also reports, with strong consistency,
	// whether the activity is cancelled. For a record whose work item was not decoded, the Renewal reports only the
	// lock. The error joins the errors of the items.
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...LockedWorkItem) ([]Renewal,
		error)
	// ClaimRun makes a delivery of a work item with NeedsRunClaim the holder of the activity's run until Run.Until. If
	// another delivery holds the run, RunClaim.Held is false. The holder can repeat the call. A delivery of a later
	// attempt claims the run immediately. A delivery of the same attempt claims the run when it has expired.
	// RunClaim.Cancel is read with strong consistency after the claim. If two deliveries compete, either one of them
	// finds the other's run, or both find the cancel. If CompleteRun has stored an outcome of the same attempt, the run
	// is neither claimed nor renewed. If the call returns an error and Held is true, the run was claimed, but the
	// cancel could not be read.
	ClaimRun(ctx context.Context, r Run) (RunClaim, error)
	// CompleteRun stores the outcome of a run before it is reported, on condition that the delivery still holds the
	// run. A later ClaimRun for the same attempt returns this outcome. Its caller then reports the outcome and does not
	// run the code again. It returns ErrLockLost if another delivery holds the run.
	CompleteRun(ctx context.Context, r Run, o *ActivityOutcome) error
	// ReleaseRun releases a delivery's run when the work item returns to its queue. It stores RunClaim.PreviousRun
	// again, or the delivery's own run as expired. It has no effect if another delivery holds the run. If Abandoned is
	// set, it stays set in later RunClaim.PreviousRun values.
	ReleaseRun(ctx context.Context, r Run, leave *Run) error
}

// LockedWorkItem is a work item with the record that holds its lock.
type LockedWorkItem struct {
	WorkItem

	Record Record
	// Cancel reads the cancellation of the activity. It is nil if the item was not returned by DecodeWorkItems.
	Cancel *CancelRead
	// CancelsFrom is the first segment of the cancel record that the holder has not read (see ReadCancels). It is 0 if
	// the holder has not read the cancel record.
	CancelsFrom int64
}

// CompletedWorkItem is a work item that needs no more processing.
type CompletedWorkItem struct {
	*LockedWorkItem

	// Outcome is the outcome to report. If it is nil, nothing is reported.
	Outcome *ActivityOutcome
	// KeepRecord is true if the record must not be deleted, because an event source mapping deletes it.
	KeepRecord bool
}
