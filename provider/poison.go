package provider

import (
	"context"
	"iter"

	"github.com/perdure/perdure/history"
)

// Poison is what keeps one message from being delivered for ever (R13): code that takes its process down is found out by the
// marks it leaves behind, and what its queue has moved to the dead letters is picked up from there.
type Poison interface {
	// MarkAttempt notes that code is about to run for a delivery, and tells how many other deliveries of the same record began and
	// were never unmarked: in each the process died, for whatever reason. It is strongly consistent. Marking the same delivery again
	// changes nothing. An attempt that is Together is not noted where there are such others.
	MarkAttempt(ctx context.Context, a Attempt) (died int, err error)
	// UnmarkAttempt notes that the process of this delivery lives: the deliveries before it are forgotten, too, and one that has
	// begun meanwhile is not. It is for records that come again; the mark of one that is deleted may stay. An attempt that has Progressed keeps its own mark.
	UnmarkAttempt(ctx context.Context, a Attempt) error
	// BlockInstance shows an instance as blocked in a build for a reason that its history cannot hold, since it cannot be read;
	// why nil shows it as running again. It does nothing unless the execution is the instance's, and the instance is not over.
	BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error
	// MovedRecords finds the records that the hub's queues have moved to their dead letters by themselves, having delivered them
	// too often: those without a reason (see DeadLetter). It looks at up to 1,000 dead letters of each queue, hides what it has looked at for a
	// minute, and goes on with the next queue after an error.
	MovedRecords(ctx context.Context) iter.Seq2[MovedRecord, error]
	// KeepMovedRecord leaves a record that has been dealt with to people: it copies it to the dead letters with a reason, and then
	// deletes what the queue had moved there. Repeating it is harmless.
	KeepMovedRecord(ctx context.Context, m MovedRecord, why error) error
}

// Attempt is a delivery for which code is to run: an activity's, or with ActivityID 0 that of a turn.
type Attempt struct {
	ExecutionID string
	ActivityID  int64
	// Record is known by its ID, and the delivery by its ReceiveCount (PickedUp.Of).
	Record Record
	// Together is that the code is to run beside that of other records, where a death says little.
	Together bool
	// Progressed is of UnmarkAttempt: the code runs on, and has left what the next delivery goes on from. So those before are forgotten,
	// and this one is not.
	Progressed bool
}

// MovedRecord is a record that a queue has moved to its dead letters.
type MovedRecord struct {
	Queue  string // that it was moved from
	Record Record
}
