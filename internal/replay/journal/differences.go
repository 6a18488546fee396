package journal

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// On replay, the recorded input of a call applies. The same build must pass the same input. Otherwise, the code depends
// on map order, the clock or random numbers, and similar calls would receive each other's results. Another build may
// pass a different input, because its code has changed.

// Differences describes inputs of decisions that differ from the inputs recorded by another build.
type Differences struct {
	// Count is the number of differing inputs. First describes the first one, and is empty if there is none.
	Count int
	First string
}

// differ counts a decision with another input, or returns an error if the same build made the recorded decision.
func (c *Cursor) differ(d *Decision, ev *history.Event) error {
	recorded, now := inputDifference(inputOf(ev), d.Input)
	want := Describe(ev) + " with the input " + recorded
	got := d.String() + " with the input " + now

	if c.options.BuildID != "" && c.decidedBy == c.options.BuildID {
		return c.options.nondeterminism(ev.ID, want, got)
	}

	c.differing.Count++
	if c.differing.Count == 1 {
		c.differing.First = fmt.Sprintf("event #%d: history has %s, the code requests %s", ev.ID, want, got)
	}
	return nil
}

// sameInput reports whether an input equals the recorded one. It compares the documents of encoded inputs.
func (c *Cursor) sameInput(ev *history.Event, input json.RawMessage) (bool, error) {
	recorded := inputOf(ev)
	if bytes.Equal(recorded, input) {
		return true, nil
	}
	doc, inline := recorded.Document()
	if !inline {
		of := history.EventPayload{Payload: &recorded, Kind: inputKind(ev.Kind), Name: ev.Name}
		return c.payloads.Same(ev.ID, of, input)
	}
	return bytes.Equal(compact(doc), compact(input)), nil
}

// inputKind returns the payload kind of the input of a decision.
func inputKind(k history.Kind) history.PayloadKind {
	switch k {
	case history.ActivityScheduled:
		return history.PayloadActivityInput
	case history.ExternalEventSent:
		return history.PayloadEventData
	case history.UpdateSent:
		return history.PayloadUpdateInput
	default:
		return history.PayloadOrchestrationInput
	}
}

// compact returns a document without insignificant space.
func compact(doc json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil || b.Len() == 0 {
		return []byte("null")
	}
	return b.Bytes()
}

// inputShown is the number of bytes of an input in a diagnosis. inputBefore of these bytes precede the first
// difference.
const (
	inputShown  = 200
	inputBefore = 60
)

// inputDifference returns excerpts of two inputs around their first difference.
func inputDifference(recorded history.Payload, input json.RawMessage) (was, is string) {
	doc, inline := recorded.Document()
	if !inline { // the input may be confidential, and a diagnosis is not encrypted
		ref, _ := recorded.Reference()
		return fmt.Sprintf("(encoded, %d bytes)", ref.Bytes), fmt.Sprintf("(%d bytes)", len(input))
	}
	a, b := compact(doc), compact(input)

	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return excerpt(a, same), excerpt(b, same)
}

// excerpt returns the part of a document around a position.
func excerpt(doc []byte, at int) string {
	from := max(0, at-inputBefore)
	if len(doc) <= inputShown {
		from = 0
	}
	to := min(len(doc), from+inputShown)

	s := string(bytes.ToValidUTF8(doc[from:to], nil))
	if from > 0 {
		s = "…" + s
	}
	if to < len(doc) {
		s += "…"
	}
	return s
}
