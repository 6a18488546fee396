package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Prefixes of DeadLetter.Reason. They are stored.
const (
	// ReasonPoison starts the reason of a record whose processing repeatedly ended the process. It is the type of the
	// failure, history.TypePoison, and its separator.
	ReasonPoison = history.TypePoison + ":"
	// ReasonRecovered starts the reason of a record that was sent again after its queue had moved it to the dead
	// letters.
	ReasonRecovered = "picked up:"
)

// DeadLetter is a record in the dead-letter queue of a queue.
type DeadLetter struct {
	// Queue is the original queue: QueueInbox, QueueTimers or a work queue.
	Queue string
	// Record is the record. Its ID is the ID of the dead letter, which stays the same until it is redriven or dropped.
	Record Record
	// Reason is the error with which a function moved the record. It is empty if the queue itself moved the record
	// after too many deliveries, until the sweeper processes it.
	Reason string
	// SentAt is the time when the record was moved to the dead-letter queue. For a record that a standard queue moved,
	// it is the time when the record was sent to that queue.
	SentAt time.Time
	// Subject identifies the subject of the record.
	Subject Subject
}

// Subject identifies the subject of a message, work item or timer. Fields that cannot be read are empty.
type Subject struct {
	Kind        MessageKind `json:"kind,omitempty"` // of a message in the inbox
	InstanceID  string      `json:"instanceId,omitempty"`
	ExecutionID string      `json:"executionId,omitempty"`
	Name        string      `json:"name,omitempty"` // of an activity, event or orchestration
	ActivityID  int64       `json:"activityId,omitempty"`
	TimerID     int64       `json:"timerId,omitempty"`
	Attempt     int         `json:"attempt,omitempty"`
}

// SubjectOf reads the subject of a record. It also reads the known fields of records of later releases.
func SubjectOf(body string) (s Subject) {
	_ = json.Unmarshal([]byte(body), &s) // unreadable fields stay empty
	return s
}

// SentError is returned by a redrive that sent dead letters but did not delete all of them.
type SentError struct {
	// IDs are the IDs of the dead letters that were sent.
	IDs []string
	// Err is the reason why they were not deleted, or why others were not sent.
	Err error
}

// Error implements error.
func (e *SentError) Error() string {
	return fmt.Sprintf("dead letters sent again but not deleted: %s: %v", strings.Join(e.IDs, ", "), e.Err)
}

// Unwrap returns Err.
func (e *SentError) Unwrap() error { return e.Err }

// DeadLetters is an optional interface of a Provider for operators who manage dead letters. SQS dead letters have no
// order and cannot be read by ID. They are received, which hides them from others for a time, and released.
type DeadLetters interface {
	// DeadLetterQueues returns the sorted names of the queues that have a dead-letter queue.
	DeadLetterQueues() []string
	// CountDeadLetters returns the approximate numbers of visible dead letters of a queue, and of hidden ones that
	// another caller, such as the sweeper, has received.
	CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error)
	// ReceiveDeadLetters receives up to 10 dead letters of a queue and hides them for the given time. It returns none
	// if no dead letter is visible.
	ReceiveDeadLetters(ctx context.Context, queue string, hide time.Duration) ([]DeadLetter, error)
	// ReleaseDeadLetters makes received dead letters of a queue visible again. It is best effort: after an error they
	// become visible when the time of ReceiveDeadLetters has passed.
	ReleaseDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// RedriveDeadLetters sends received dead letters to their queue as new records, and then deletes them. After an
	// error they are still dead letters. A SentError lists those that were sent already. Drop these with
	// DropDeadLetters, because another redrive would send them again. Only the inbox deduplicates them, for five
	// minutes.
	RedriveDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// DropDeadLetters permanently deletes received dead letters of a queue.
	DropDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
}

// DeadLetterRecovery is for the sweeper: it recovers records that queues moved to their dead-letter queues after too
// many deliveries (R13). It is optional (NoDeadLetterRecovery), because some queues never move records.
type DeadLetterRecovery interface {
	// DeadLetteredRecords yields the records that queues moved to their dead-letter queues after too many deliveries:
	// those without a reason (see DeadLetter). It reads up to 1,000 dead letters per queue and hides them for a minute.
	// After an error it continues with the next queue.
	DeadLetteredRecords(ctx context.Context) iter.Seq2[DeadLetteredRecord, error]
	// AnnotateDeadLetter leaves a record to an operator: it copies the record to the dead-letter queue with a reason,
	// and then deletes the original. It is idempotent.
	AnnotateDeadLetter(ctx context.Context, m DeadLetteredRecord, why error) error
}

// DeadLetteredRecord is a record that a queue moved to its dead-letter queue.
type DeadLetteredRecord struct {
	// Queue is the queue that moved the record.
	Queue  string
	Record Record
}
