package provider

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Prefixes of DeadLetter.Reason. They are stored.
const (
	// ReasonPoison is the prefix of the reason of a record whose processing repeatedly ended the process. It consists
	// of the failure type history.TypePoison and a colon.
	ReasonPoison = history.TypePoison + ":"
	// ReasonRecovered is the prefix of the reason of a record that was sent again after its queue had moved it to the
	// dead-letter queue.
	ReasonRecovered = "picked up:"
)

// DeadLetter is a record in a dead-letter queue.
type DeadLetter struct {
	// Queue is the original queue: QueueInbox, QueueTimers or a work queue.
	Queue string
	// Record is the record. Its ID is the ID of the dead letter. The ID does not change until the dead letter is
	// redriven or dropped.
	Record Record
	// Reason is the error of the function that moved the record. It is empty if the queue moved the record after too
	// many deliveries and the sweeper has not processed it yet.
	Reason string
	// SentAt is the time at which the record was moved to the dead-letter queue. If a standard queue moved the record,
	// it is the time at which the record was sent to that queue.
	SentAt time.Time
	// Subject identifies the instance, activity or timer of the record.
	Subject Subject
}

// Subject identifies the instance, activity or timer that a message, work item or timer record belongs to. Fields that
// cannot be read are empty.
type Subject struct {
	Kind        MessageKind `json:"kind,omitempty"` // kind of an inbox message
	InstanceID  string      `json:"instanceId,omitempty"`
	ExecutionID string      `json:"executionId,omitempty"`
	Name        string      `json:"name,omitempty"` // name of an activity, event or orchestration
	ActivityID  int64       `json:"activityId,omitempty"`
	TimerID     int64       `json:"timerId,omitempty"`
	Attempt     int         `json:"attempt,omitempty"`
}

// SentError is returned by a redrive that sent dead letters but could not delete all of them.
type SentError struct {
	// IDs are the IDs of the dead letters that were sent.
	IDs []string
	// Err is the error of the deletion, or of other dead letters that were not sent.
	Err error
}

// Error implements error.
func (e *SentError) Error() string {
	return fmt.Sprintf("dead letters sent again but not deleted: %s: %v", strings.Join(e.IDs, ", "), e.Err)
}

// Unwrap returns Err.
func (e *SentError) Unwrap() error { return e.Err }

// DeadLetters is an optional interface of a Provider for operators who manage dead letters. SQS dead letters have no
// order and cannot be read by ID. A caller receives dead letters, which hides them from other callers for some time,
// and releases them.
type DeadLetters interface {
	// DeadLetterQueues returns the sorted names of the queues that have a dead-letter queue.
	DeadLetterQueues() []string
	// CountDeadLetters returns the approximate numbers of visible and hidden dead letters of a queue. Hidden dead
	// letters were received by another caller, such as the sweeper.
	CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error)
	// ReceiveDeadLetters receives up to 10 dead letters of a queue and hides them for the given time. If no dead letter
	// is visible, it returns an empty slice.
	ReceiveDeadLetters(ctx context.Context, queue string, hide time.Duration) ([]DeadLetter, error)
	// ReleaseDeadLetters makes received dead letters of a queue visible again. After an error, they become visible when
	// the time of ReceiveDeadLetters has passed.
	ReleaseDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// RedriveDeadLetters sends received dead letters to their queue as new records, and then deletes them. After an
	// error, the dead letters still exist. A SentError lists the dead letters that were already sent. Delete these with
	// DropDeadLetters, because another redrive would send them again. Only the inbox drops duplicates, for five
	// minutes.
	RedriveDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// DropDeadLetters permanently deletes received dead letters of a queue.
	DropDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
}

// DeadLetterRecovery recovers records that queues moved to their dead-letter queues after too many deliveries (R13).
// The sweeper uses it. It is optional (NoDeadLetterRecovery), because some queues never move records.
type DeadLetterRecovery interface {
	// DeadLetteredRecords yields the records that queues moved to their dead-letter queues after too many deliveries.
	// These records have no reason (see DeadLetter). It reads up to 1,000 dead letters per queue. It hides these
	// records for a minute, and the others until it ends. After an error it continues with the next queue.
	DeadLetteredRecords(ctx context.Context) iter.Seq2[DeadLetteredRecord, error]
	// AnnotateDeadLetter adds a reason to a record that an operator must handle. It copies the record with the reason
	// to the dead-letter queue, and then deletes the original. It is idempotent.
	AnnotateDeadLetter(ctx context.Context, m DeadLetteredRecord, why error) error
}

// DeadLetteredRecord is a record that a queue moved to its dead-letter queue.
type DeadLetteredRecord struct {
	// Queue is the queue that moved the record.
	Queue  string
	Record Record
}
