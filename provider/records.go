package provider

import (
	"context"
	"time"
)

// Records contains operations on records that do not depend on their content. All receivers of records use it.
type Records interface {
	// DeadLetter copies a record, with the error, to the dead-letter queue of its queue, so that the record can be
	// deleted.
	DeadLetter(ctx context.Context, queue string, u Unreadable) error
	// AbandonRecords makes records of a queue visible again after a delay, so that they are retried sooner than after a
	// crash (R19). After an error, the records become visible when their locks expire.
	AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...Record) error
	// DeleteRecords deletes processed records of a queue before the function's batch ends (R19).
	DeleteRecords(ctx context.Context, queue string, records ...Record) error
}

// CrashMarkers detects records whose code repeatedly ends its process (R13). Turns and workers use it.
type CrashMarkers interface {
	// PutCrashMarker writes a crash marker for a delivery whose code is about to run. It returns the number of other
	// deliveries of the same record whose marker still exists because their process died. The call is strongly
	// consistent and idempotent. If died is not 0, an attempt with Batched set is not marked.
	PutCrashMarker(ctx context.Context, d Delivery) (crashCount int, err error)
	// DeleteCrashMarker removes the crash markers of this delivery and of earlier deliveries, because the process
	// survived. It is required for records that will be redelivered, and optional for deleted records. An attempt with
	// Progressed set keeps its own marker.
	DeleteCrashMarker(ctx context.Context, d Delivery) error
}

// The names of the queues other than the work queues, as in PERDURE_DEAD_LETTERS.
const (
	QueueInbox  = "inbox"
	QueueTimers = "timers"
)

// Unreadable is a record for DeadLetter, with the reason. The decoding methods return it for a record that cannot be
// decoded. Turns and workers also use it for a record that they can decode but must not process, such as poison (R13).
type Unreadable struct {
	Record Record
	Err    error
}

// Delivery is a delivery of a record whose code is about to run: a turn if ActivityID is 0, otherwise the activity.
type Delivery struct {
	ExecutionID string
	ActivityID  int64
	// Record identifies the record by its ID and the delivery by its ReceiveCount (see Redrive.Of).
	Record Record
	// Batched is true if the code runs concurrently with the code of other records, so that a crash cannot be
	// attributed to one of them.
	Batched bool
	// Progressed is used by DeleteCrashMarker. It is true if the code is still running and has stored progress from
	// which the next delivery continues. Only the markers of earlier deliveries are then removed.
	Progressed bool
}

// Record is an encoded message that a queue delivered.
type Record struct {
	// ID is the queue's message ID. Batch responses name failed records by it.
	ID string
	// ReceiptHandle is the lock token, such as the SQS receipt handle.
	ReceiptHandle string
	Body          string
	// Group is the message group of a FIFO queue. Records of one group are ordered.
	Group string
	// Sequence is the SequenceNumber of a FIFO queue.
	Sequence string
	// ReceiveCount is the number of deliveries so far, including this one.
	ReceiveCount int
	// SentAt is the time at which the record was sent, or zero if it is not known.
	SentAt time.Time
	// Hold is the time limit of the record's lock. It is nil for a record that was pushed.
	Hold *LockHold
}
