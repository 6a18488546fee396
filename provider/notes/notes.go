// Package notes changes the list of notes that a provider stores with an instance.
package notes

import (
	"slices"

	"github.com/perdure/perdure/provider"
)

// Contains reports whether a list contains the note of a call. Notes with an ID are equal if their IDs are equal. Notes
// without an ID of different calls with the same text differ in At.
func Contains(all []provider.Note, n *provider.Note) bool {
	return slices.ContainsFunc(all, func(other provider.Note) bool {
		if n.ID != "" || other.ID != "" {
			return n.ID == other.ID
		}
		return n.Text == other.Text && n.By == other.By && n.At.Equal(other.At)
	})
}

// Add returns a copy of a list with a note added, and without the oldest note above provider.MaxNotes. It does not
// modify the list.
func Add(all []provider.Note, n provider.Note) []provider.Note {
	more := append(append([]provider.Note(nil), all...), n)
	return more[max(0, len(more)-provider.MaxNotes):]
}
