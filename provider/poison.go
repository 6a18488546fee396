package provider

import (
	"context"
	"iter"

	"github.com/perdure/perdure/history"
)

// Poison keeps one message from being delivered for ever (R13): code that kills its process is recognised by the marks
// it leaves, and records that a queue has moved to the dead letters are picked up from there.
type Poison interface {
	// MarkAttempt writes a mark for a delivery whose code is about to run, and returns how many other deliveries of the
	// same record began and were never unmarked: in each of these the process died, for whatever reason. It is strongly
	// consistent. Marking the same delivery again changes nothing. An attempt that is Together is not marked where
	// there are such other deliveries.
	MarkAttempt(ctx context.Context, a Attempt) (died int, err error)
	// UnmarkAttempt records that the process of this delivery lives: it removes the marks of this delivery and of those
	// before it, but not that of one that has begun meanwhile. It is needed for records that will be delivered again;
	// the mark of a deleted record may stay. An attempt that has Progressed keeps its own mark.
	UnmarkAttempt(ctx context.Context, a Attempt) error
	// BlockInstance sets an instance's status to blocked in a build, for a reason that its history cannot hold because
	// the history cannot be read; with why nil it sets the status back to running. It does nothing unless the execution
	// is the instance's current one, and the instance is not over.
	BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error
	// MovedRecords finds the records that the hub's queues have moved to their dead letters by themselves after too
	// many deliveries: those without a reason (see DeadLetter). It reads up to 1,000 dead letters of each queue, hides
	// what it has read for a minute, and goes on with the next queue after an error.
	MovedRecords(ctx context.Context) iter.Seq2[MovedRecord, error]
	// KeepMovedRecord leaves a record that has been dealt with to an operator: it copies the record to the dead letters
	// with a reason, and then deletes the one that the queue had moved there. Repeating it is harmless.
	KeepMovedRecord(ctx context.Context, m MovedRecord, why error) error
}

// Attempt is a delivery for which code is to run: the code of an activity or, with ActivityID 0, of a turn.
type Attempt struct {
	ExecutionID string
	ActivityID  int64
	// Record identifies the record by its ID, and the delivery by its ReceiveCount (PickedUp.Of).
	Record Record
	// Together means that the code is to run beside that of other records, where a death proves little about each.
	Together bool
	// Progressed is for UnmarkAttempt: the code runs on, and has stored what the next delivery goes on from. The marks
	// of earlier deliveries are therefore removed, and this one's stays.
	Progressed bool
}

// MovedRecord is a record that a queue has moved to its dead letters.
type MovedRecord struct {
	Queue  string // the queue that moved it
	Record Record
}
