package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Note is a text that an operator added to an instance.
type Note = provider.Note

// Annotate adds a note to an instance that is running or has ended. Status returns the newest 20 notes with their
// callers and times, until the instance is purged. Notes survive continue-as-new, but Restart starts an instance
// without notes. The code of the instance does not see them. Each call adds a note, unless WithNoteID is given.
//
// A note is UTF-8 text of 1 to 1,024 bytes. Annotate returns a *provider.FieldError for an empty or invalid text, and a
// *perdure.PayloadTooLargeError for a longer text. It returns ErrNotFound if the instance does not exist or is being
// purged. It returns a provider.UnsupportedError if the hub's provider does not support notes. If concurrent notes
// conflict repeatedly, it returns a retryable error with provider.ErrConflict.
func (c *Client) Annotate(ctx context.Context, instanceID, note string, opts ...AnnotateOption) error {
	o := optionsOf(opts)
	err := checkNote(instanceID, note)
	if err == nil && o.id != nil {
		err = inputcheck.Text("noteId", *o.id, 1, provider.MaxNoteIDBytes)
	}
	if err == nil {
		n := Note{Text: note, By: c.hub.Calls.Caller(ctx), At: c.hub.Now().UTC()}
		if o.id != nil {
			n.ID = *o.id
		}
		err = c.hub.Call(ctx, clientcall.Annotate, instanceID, "", func(ctx context.Context) error {
			return c.ops.Annotate(ctx, instanceID, n)
		})
	}
	if err != nil {
		return fmt.Errorf("client: annotate: %w", err)
	}
	return nil
}

// AnnotateOption is an option of Annotate.
type AnnotateOption func(*annotateOptions)

type annotateOptions struct{ id *string }

// WithNoteID sets the ID of a note, of 1 to 256 bytes of UTF-8 without control characters. Annotate does nothing if one
// of the newest 20 notes of the instance has the ID.
func WithNoteID(id string) AnnotateOption { return func(o *annotateOptions) { o.id = &id } }

func checkNote(instanceID, note string) error {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return err
	}
	if len(note) > provider.MaxNoteBytes {
		return &perdure.PayloadTooLargeError{Name: inputcheck.FieldNote, Bytes: len(note), Limit: provider.MaxNoteBytes}
	}
	return inputcheck.Text(inputcheck.FieldNote, note, 1, provider.MaxNoteBytes)
}
