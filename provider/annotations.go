package provider

import (
	"context"
	"time"
)

// Annotations is for operators: it adds notes to instances. It is optional (NoAnnotations), because no code depends on
// notes.
type Annotations interface {
	// Annotate adds a note to an instance, which may have ended, and drops the oldest note above MaxNotes. ReadInstance
	// returns the notes until the instance is deleted. It starts no turn and changes no history. It does nothing if the
	// instance has a note with the same ID. It returns ErrNotFound if the instance does not exist or is being
	// deleted.
	Annotate(ctx context.Context, instanceID string, n Note) error
}

// Note is a text that an operator added to an instance.
type Note struct {
	// Text has at most MaxNoteBytes bytes.
	Text string `json:"text"`
	// By is the caller, usually an IAM identity. It is empty if unknown.
	By string `json:"by,omitempty"`
	// At is the time of the call, in nanoseconds.
	At time.Time `json:"at"`
	// ID identifies the note among those of its instance. It is empty if the caller gave none.
	ID string `json:"id,omitempty"`
}

// Limits of notes.
const (
	MaxNotes     = 20   // the newest notes of an instance
	MaxNoteBytes = 1024 // of the text

	MaxNoteIDBytes = 256
)

// Equal reports whether both are the note of one call. Notes with an ID are equal if their IDs are. The texts of other
// notes may be equal, but differ in At.
func (n Note) Equal(other Note) bool {
	if n.ID != "" || other.ID != "" {
		return n.ID == other.ID
	}
	return n.Text == other.Text && n.By == other.By && n.At.Equal(other.At)
}

// AddNote returns notes with another note, without the oldest above MaxNotes. It does not modify notes.
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
