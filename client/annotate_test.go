package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func annotated(t *testing.T) (*fakeprovider.Provider, *client.Client, time.Time) {
	t.Helper()
	at := time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	p := fakeprovider.New(now, "hello")
	c := connect(p, client.WithClock(now))
	if _, err := c.Start(t.Context(), "hello", nil, client.WithInstanceID("one")); err != nil {
		t.Fatal(err)
	}
	return p, c, at
}

func TestAnnotate_note_hasItsCallerAndTime(t *testing.T) {
	t.Parallel()
	p, c, at := annotated(t)
	before := len(p.Sent())
	ctx := client.ContextWithCaller(t.Context(), "arn:aws:iam::1:user/ann")
	longest := strings.Repeat("é", provider.MaxNoteBytes/2)
	if err := c.Annotate(ctx, "one", longest); err != nil {
		t.Fatal(err)
	}
	s, err := c.Status(t.Context(), "one")
	want := client.Note{Text: longest, By: "arn:aws:iam::1:user/ann", At: at}
	if overHTTP && len(s.Notes) == 1 { // the API sets the caller, and the client the ID
		want.By, want.ID = "", s.Notes[0].ID
	}
	if err != nil || len(s.Notes) != 1 || s.Notes[0] != want {
		t.Errorf("got notes %v, %v", s.Notes, err)
	}
	if after := len(p.Sent()); after != before {
		t.Errorf("Annotate sent %d messages, want none", after-before)
	}
}

func TestAnnotate_invalidNote_isRejected(t *testing.T) {
	t.Parallel()
	_, c, _ := annotated(t)
	for _, note := range []string{"", "a\xff", "a\x00"} {
		err := c.Annotate(t.Context(), "one", note)
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != "note" {
			t.Errorf("%q: got error %v", note, err)
		}
	}
	err := c.Annotate(t.Context(), "one", strings.Repeat("a", provider.MaxNoteBytes+1))
	large, ok := errors.AsType[*perdure.PayloadTooLargeError](err)
	if !ok || large.Bytes != provider.MaxNoteBytes+1 || large.Limit != provider.MaxNoteBytes {
		t.Errorf("large note: got error %v", err)
	}
	if err := c.Annotate(t.Context(), "missing", "a"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("missing instance: got error %v", err)
	}
}

// declining is a hub that does not support notes.
type declining struct {
	*fakeprovider.Provider
	provider.NoAnnotations
}

func (d declining) Annotate(ctx context.Context, id string, n provider.Note) error {
	return d.NoAnnotations.Annotate(ctx, id, n)
}

func TestAnnotate_providerWithoutNotes_isUnsupported(t *testing.T) {
	t.Parallel()
	p, _, _ := annotated(t)
	err := connect(declining{Provider: p}).Annotate(t.Context(), "one", "a")
	if !errors.Is(err, provider.UnsupportedError{Capability: provider.CapabilityAnnotations}) {
		t.Errorf("got error %v", err)
	}
}

func TestAnnotate_repeatedNoteID_addsOneNote(t *testing.T) {
	t.Parallel()
	_, c, _ := annotated(t)
	for _, id := range []string{"k", "k", "l"} {
		if err := c.Annotate(t.Context(), "one", "a", client.WithNoteID(id)); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := c.Status(t.Context(), "one"); err != nil || len(s.Notes) != 2 || s.Notes[0].ID != "k" {
		t.Errorf("notes %v, %v", s.Notes, err)
	}
	for _, id := range []string{"", "a\x00", strings.Repeat("x", provider.MaxNoteIDBytes+1)} {
		err := c.Annotate(t.Context(), "one", "a", client.WithNoteID(id))
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != "noteId" {
			t.Errorf("%q: error %v", id, err)
		}
	}
}
