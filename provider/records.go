package provider

import (
	"context"
	"time"
)

// Records is for all consumers of queues: it contains operations on records that do not depend on their content.
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

// CrashMarkers is for turns and workers: it detects records whose code ends its process repeatedly (R13).
type CrashMarkers interface {
	// PutCrashMarker writes a crash marker for a delivery whose code is about to run. It returns the number of other
	// deliveries of the same record that were marked and never unmarked, which means that their processes died. It is
	// strongly consistent and idempotent. If there are such deliveries, an attempt with Batched set is not marked.
	PutCrashMarker(ctx context.Context, a Attempt) (died int, err error)
	// DeleteCrashMarker removes the crash markers of this delivery and of earlier ones, because the process survived.
	// It is required for records that will be redelivered. The marker of a deleted record can stay. An attempt with
	// Progressed set keeps its own marker.
	DeleteCrashMarker(ctx context.Context, a Attempt) error
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

// Attempt is a delivery whose code is about to run: the code of an activity or, if ActivityID is 0, of a turn.
type Attempt struct {
	ExecutionID string
	ActivityID  int64
	// Record identifies the record by its ID, and the delivery by its ReceiveCount (Redrive.Of).
	Record Record
	// Batched is true if the code runs concurrently with the code of other records, so that a crash cannot be
	// attributed to one of them.
	Batched bool
	// Progressed is for DeleteCrashMarker: the code is still running, and has stored progress from which the next
	// delivery continues. Markers of earlier deliveries are removed, and the marker of this one stays.
	Progressed bool
}

// Record is an encoded message as a queue delivered it.
type Record struct {
	// ID is the queue's message ID. Batch responses name failed records by it.
	ID string
	// ReceiptHandle is the lock token, such as the SQS receipt handle.
	ReceiptHandle string
	Body          string
	// Group is the message group of a FIFO queue, in which records are ordered.
	Group string
	// Sequence is the SequenceNumber of a FIFO queue.
	Sequence string
	// ReceiveCount is the number of deliveries so far, including this one.
	ReceiveCount int
	// SentAt is the time when the record was sent, or zero if it is not known.
	SentAt time.Time
	// Hold is the hold of the record's lock. It is nil for a record that was pushed.
	Hold *LockHold
}
