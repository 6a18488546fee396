package provider

import (
	"context"
	"iter"

	"github.com/perdure/perdure/history"
)

// PoisonHandler detects messages whose code ends its process repeatedly, with crash markers, and recovers records that queues
// moved to their dead-letter queues (R13).
type PoisonHandler interface {
	// PutCrashMarker writes a crash marker for a delivery whose code is about to run. It returns the number of other
	// deliveries of the same record that were marked and never unmarked, which means that their processes died. It is
	// strongly consistent and idempotent. If there are such deliveries, an attempt with Batched set is not marked.
	PutCrashMarker(ctx context.Context, a Attempt) (died int, err error)
	// DeleteCrashMarker removes the crash markers of this delivery and of earlier ones, because the process survived. It is
	// required for records that will be redelivered. The marker of a deleted record can stay. An attempt with
	// Progressed set keeps its own marker.
	DeleteCrashMarker(ctx context.Context, a Attempt) error
	// BlockInstance sets an instance's status to blocked in a build because its history cannot be read. If why is nil,
	// it sets the status back to running. It does nothing if the execution is not the instance's current one, or the
	// instance has ended.
	BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error
	// DeadLetteredRecords yields the records that queues moved to their dead-letter queues after too many deliveries: those
	// without a reason (see DeadLetter). It reads up to 1,000 dead letters per queue and hides them for a minute. After
	// an error it continues with the next queue.
	DeadLetteredRecords(ctx context.Context) iter.Seq2[DeadLetteredRecord, error]
	// AnnotateDeadLetter leaves a record to an operator: it copies the record to the dead-letter queue with a reason, and
	// then deletes the original. It is idempotent.
	AnnotateDeadLetter(ctx context.Context, m DeadLetteredRecord, why error) error
}

// Attempt is a delivery whose code is about to run: the code of an activity or, if ActivityID is 0, of a turn.
type Attempt struct {
	ExecutionID string
	ActivityID  int64
	// Record identifies the record by its ID, and the delivery by its ReceiveCount (Redrive.Of).
	Record Record
	// Batched is true if the code runs concurrently with the code of other records, so that a crash cannot be
	// attributed to one of them.
	Batched bool
	// Progressed is for DeleteCrashMarker: the code is still running, and has stored progress from which the next delivery
	// continues. Markers of earlier deliveries are removed, and the marker of this one stays.
	Progressed bool
}

// DeadLetteredRecord is a record that a queue moved to its dead-letter queue.
type DeadLetteredRecord struct {
	// Queue is the queue that moved the record.
	Queue  string
	Record Record
}
