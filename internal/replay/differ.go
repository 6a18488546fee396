package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// An activity or another orchestration has the input that history records, whatever the code passes on replay. The same build must pass the same
// input. If it does not, the code depends on something that is not the same every time: the order of a map, the clock, a random number. Then
// calls that look alike would get each other's results. Another build may pass another input: its code has changed since the call was made.

// Differences describes inputs of decisions that differ from the inputs recorded by another build.
type Differences struct {
	// Count is the number of differing inputs. First describes the first one, and is empty if there is none.
	Count int
	First string
}

// differ notes a decision with another input, or returns an error when the same build took the recorded one.
func (c *cursor) differ(d *decision, ev *history.Event) error {
	recorded, now := inputDifference(inputOf(ev), d.input)
	want := describe(ev) + " with the input " + recorded
	got := d.String() + " with the input " + now

	if c.options.BuildID != "" && c.decidedBy == c.options.BuildID {
		return c.options.nondeterminism(ev.ID, want, got)
	}

	c.differing.Count++
	if c.differing.Count == 1 {
		c.differing.First = fmt.Sprintf("event #%d: history has %s, the code asks for %s", ev.ID, want, got)
	}
	return nil
}

// sameInput reports whether an input is the recorded one: a sealed one by its document, however that was encoded.
func (c *cursor) sameInput(ev *history.Event, input json.RawMessage) (bool, error) {
	recorded := inputOf(ev)
	if bytes.Equal(recorded, input) {
		return true, nil
	}
	doc, inline := recorded.Document()
	if !inline {
		return c.payloads.Same(ev.ID, history.EventPayload{Payload: &recorded, Kind: inputKind(ev.Kind), Name: ev.Name}, input)
	}
	return bytes.Equal(compact(doc), compact(input)), nil
}

// inputKind is what the input is that an event gives to whatever it is about.
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

// compact is a document without insignificant space.
func compact(doc json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil || b.Len() == 0 {
		return []byte("null")
	}
	return b.Bytes()
}

// inputShown is how much of an input a diagnosis shows, in bytes, and inputBefore how much of that may lie before the place where two differ.
const (
	inputShown  = 200
	inputBefore = 60
)

// inputDifference returns excerpts of two inputs from where they differ.
func inputDifference(recorded history.Payload, input json.RawMessage) (was, is string) {
	doc, inline := recorded.Document()
	if !inline { // it may be a secret, and a diagnosis is none
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

// excerpt returns what stands around a place of a document.
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
