package provider

import (
	"context"
	"time"
)

// Annotations adds notes to instances for operators. It is optional (NoAnnotations), because no code depends on notes.
type Annotations interface {
	// Annotate adds a note to an instance that is running or has ended, and drops the oldest note above MaxNotes.
	// ReadInstance returns the notes until the instance is deleted. Annotate starts no turn and does not change the
	// history. It does nothing if the instance has a note with the same ID. It returns ErrNotFound if the instance
	// does not exist or is being deleted.
	Annotate(ctx context.Context, instanceID string, n Note) error
}

// Note is a text that an operator added to an instance.
type Note struct {
	// Text has at most MaxNoteBytes bytes.
	Text string `json:"text"`
	// By is the caller, usually an IAM identity. It is empty if unknown.
	By string `json:"by,omitempty"`
	// At is the time of the call, with a resolution of a nanosecond.
	At time.Time `json:"at"`
	// ID identifies the note among those of its instance. It is empty if the caller gave none.
	ID string `json:"id,omitempty"`
}

// Limits of notes.
const (
	MaxNotes     = 20   // number of notes of an instance
	MaxNoteBytes = 1024 // length of the text

	MaxNoteIDBytes = 256
)

// NoAnnotations is embedded by a Provider without Annotations.
type NoAnnotations struct{}

// Annotate returns an UnsupportedError.
func (NoAnnotations) Annotate(context.Context, string, Note) error {
	return UnsupportedError{CapabilityAnnotations}
}
