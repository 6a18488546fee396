package provider

import (
	"context"
	"time"
)

// WorkItems is for workers: it receives work items, holds them while their activities run, and reports outcomes.
type WorkItems interface {
	// DecodeWorkItems decodes the records of a work queue. It returns unreadable records separately. Pass them to
	// DeadLetter. LockedWorkItem.Cancel of each item returns, with strong consistency, whether the activity is
	// cancelled. The first call reads the cancel record for all items of the execution.
	DecodeWorkItems(ctx context.Context, records []Record) (items []LockedWorkItem, unreadable []Unreadable)
	// AckWorkItems sends the outcomes, as one message per execution, and then deletes the records of the work items
	// from their queue, except those with KeepRecord set (R14). It returns the records whose outcome was not accepted.
	// They stay in the queue and are redelivered.
	AckWorkItems(ctx context.Context, queue string, done []CompletedWorkItem) (failed []Record, err error)
	// PutWorkItems sends work items to their queues. They become visible after the rest of their delay
	// (WorkItem.NotBefore), or after the maximum delay of the queue. Use it to resend a work item: send it first,
	// and then delete the old record (R14).
	PutWorkItems(ctx context.Context, items ...WorkItem) error
	// RenewWorkItemLocks extends the locks of a queue's work items to lock from now, like Poller.RenewRecords. It
	// returns one Renewal per item, in order. A Renewal has the end of the lock or reports that it is lost, and
	// reports, with strong consistency, whether the activity is cancelled. For a record whose work item was not
	// decoded, it returns only the lock. The error joins the errors of the items.
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...LockedWorkItem) ([]Renewal,
		error)
	// ClaimRun makes a delivery of a work item with NeedsRunClaim the holder of the activity's run until Run.Until. If
	// another delivery holds the run, RunClaim.Held is false. The holder can repeat the call. A delivery of a later
	// attempt takes the run immediately, and a delivery of the same attempt when the run has expired. RunClaim.Cancel
	// is read with strong consistency after the run was taken, so that of two competing deliveries either one finds the
	// other's run, or both find the cancel. If CompleteRun has stored an outcome of the same attempt, the run is
	// neither taken nor renewed. If the call returns an error and Held is true, the run was taken, but its cancel could
	// not be read.
	ClaimRun(ctx context.Context, r Run) (RunClaim, error)
	// CompleteRun stores the outcome of a run before it is reported, on condition that the delivery still holds the
	// run. A later ClaimRun for the same attempt returns this outcome, and its caller reports it, so that no code of
	// the attempt runs again. It returns ErrLockLost if another delivery holds the run.
	CompleteRun(ctx context.Context, r Run, o *ActivityOutcome) error
	// ReleaseRun releases a delivery's run: it stores RunClaim.PreviousRun again, or the delivery's own run as expired.
	// The work item returns to its queue. Nothing is changed if another delivery holds the run. Abandoned stays set in
	// later RunClaim.PreviousRun values.
	ReleaseRun(ctx context.Context, r Run, leave *Run) error
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
