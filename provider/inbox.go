package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// OrchestrationItem contains the messages of one instance that were received and locked together.
type OrchestrationItem struct {
	InstanceID string
	Messages   []InboxMessage
}

// InboxMessage is a message with its position in the inbox.
type InboxMessage struct {
	Message

	Position Position
	Record   Record
	// NewExecutionID is the ID of the execution that a start creates, if payloads were stored for that execution. The
	// function NewExecutionID creates it. If the field is empty, the provider creates an ID.
	NewExecutionID string
	// InitialInputs are inputs of a start for its first turn.
	InitialInputs []history.Event
	// PossibleDuplicateSentAt is set if the message may be a copy of a message that an earlier instance with the same
	// ID has consumed. It is the time at which the message was sent. The message must not create an instance if an
	// instance with the same ID was deleted after that time.
	PossibleDuplicateSentAt time.Time
}

// LockedUntil returns the earliest time at which the lock of one of the item's records expires, or zero if no such time
// is known.
func (it *OrchestrationItem) LockedUntil() (first time.Time) {
	for i := range it.Messages {
		if u := it.Messages[i].Record.LockedUntil(); !u.IsZero() && (first.IsZero() || u.Before(first)) {
			first = u
		}
	}
	return first
}
