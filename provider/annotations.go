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

// Equal reports whether both notes are from the same call. Notes with an ID are equal if their IDs are equal. Notes
// without an ID of different calls with the same text differ in At.
func (n Note) Equal(other Note) bool {
	if n.ID != "" || other.ID != "" {
		return n.ID == other.ID
	}
	return n.Text == other.Text && n.By == other.By && n.At.Equal(other.At)
}

// AddNote returns a copy of notes with n added, and without the oldest note above MaxNotes. It does not modify notes.
func AddNote(notes []Note, n Note) []Note {
	all := append(append([]Note(nil), notes...), n)
	return all[max(0, len(all)-MaxNotes):]
}

// NoAnnotations is embedded by a Provider without Annotations.
type NoAnnotations struct{}

// Annotate returns an UnsupportedError.
func (NoAnnotations) Annotate(context.Context, string, Note) error {
	return UnsupportedError{CapabilityAnnotations}
}
