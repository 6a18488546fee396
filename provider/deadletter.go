package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// DeadLetter is a record among the dead letters of a queue.
type DeadLetter struct {
	// Queue is the queue whose dead letter this is: QueueInbox, QueueTimers or a work queue.
	Queue string
	// Record has the ID of the dead letter, which stays the same until it is redriven or dropped.
	Record Record
	// Reason is why a function copied the record there. It is empty for a record that the queue itself has moved, after
	// too many deliveries, and that the watch has not picked up yet.
	Reason string
	// SentAt is when the record was sent to the dead letters, or moved there; from a standard queue the time at which it was sent to that.
	SentAt time.Time
	// About is what the record says of itself.
	About Subject
}

// Subject is what a message, work item or timer says of itself, as far as it can be read: any field may be empty.
type Subject struct {
	Kind        MessageKind `json:"kind,omitempty"` // of a message of the inbox
	InstanceID  string      `json:"instanceId,omitempty"`
	ExecutionID string      `json:"executionId,omitempty"`
	Name        string      `json:"name,omitempty"` // of an activity, event or orchestration
	ActivityID  int64       `json:"activityId,omitempty"`
	TimerID     int64       `json:"timerId,omitempty"`
	Attempt     int         `json:"attempt,omitempty"`
}

// SubjectOf reads what a record says of itself. It reads records of later releases too, as far as their fields are known.
func SubjectOf(body string) (s Subject) {
	_ = json.Unmarshal([]byte(body), &s) // what cannot be read says nothing
	return s
}

// SentError is the error of a redrive which has sent some dead letters again that it has not deleted.
type SentError struct {
	// IDs are those of the dead letters that were sent.
	IDs []string
	// Err is why they were not deleted, or why others were not sent.
	Err error
}

func (e *SentError) Error() string {
	return fmt.Sprintf("sent again, but not deleted: %s: %v", strings.Join(e.IDs, ", "), e.Err)
}

func (e *SentError) Unwrap() error { return e.Err }

// DeadLetters is what a provider offers, beside Provider, to operators who deal with dead letters. SQS has neither an
// order of dead letters nor a way to read one by its ID: they are received, which hides them from everybody else for a
// time, and released again.
type DeadLetters interface {
	// DeadLetterQueues returns the names of the queues that have dead letters, sorted.
	DeadLetterQueues() []string
	// CountDeadLetters returns about how many dead letters of a queue there are: those that may be received now, and
	// those that somebody has received, the watch for example.
	CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error)
	// ReceiveDeadLetters takes up to 10 dead letters of a queue and hides them for some time. None is an answer: there
	// are no more, or none that is visible.
	ReceiveDeadLetters(ctx context.Context, queue string, hide time.Duration) ([]DeadLetter, error)
	// ReleaseDeadLetters makes received dead letters of a queue visible again at once. It is best effort: an error
	// affects only the time.
	ReleaseDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// RedriveDeadLetters sends received dead letters of a queue to that queue again, as new records that nothing takes
	// for repeats, and then deletes them. After an error they are still dead letters. A SentError names those that were
	// sent: they need DropDeadLetters, since another redrive sends them again, which the inbox alone takes for a repeat,
	// and for five minutes.
	RedriveDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
	// DropDeadLetters deletes received dead letters of a queue for good.
	DropDeadLetters(ctx context.Context, queue string, letters ...DeadLetter) error
}
