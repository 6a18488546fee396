package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// OrchestrationItem contains the messages of one instance that were received, and therefore locked, together.
type OrchestrationItem struct {
	InstanceID string
	Messages   []InboxMessage
}

// InboxMessage is a message with its position in the inbox.
type InboxMessage struct {
	Message

	Position Position
	Record   Record
	// NewExecutionID is the ID of the execution that a start creates, from NewExecutionID, if payloads were stored for
	// it. If it is empty, the provider creates one.
	NewExecutionID string
	// InitialInputs are inputs of a start for its first turn.
	InitialInputs []history.Event
	// PossibleDuplicateSentAt is the time when the message was sent, if it may be a copy of a message that an earlier
	// instance with the ID has consumed, or zero. The message must not create an instance if an instance with the ID
	// was deleted after that time.
	PossibleDuplicateSentAt time.Time
}

// LockedUntil returns the earliest time when the lock of one of the item's records expires, or zero if none is known.
func (it *OrchestrationItem) LockedUntil() (first time.Time) {
	for i := range it.Messages {
		if u := it.Messages[i].Record.LockedUntil(); !u.IsZero() && (first.IsZero() || u.Before(first)) {
			first = u
		}
	}
	return first
}
