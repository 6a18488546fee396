package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// The input of an activity or of another orchestration is what history says, whatever the code gives it on replay. The same build must
// give it the same, since else the code depends on what is not the same every time: the order of a map, the clock, a random number. Then
// other calls, which look alike, would be given what belongs to each other. Another build may give it another: its code has changed, and
// the call was made before.

// Differences are inputs that code decides otherwise by now than the build did that made the history.
type Differences struct {
	// Count is how many there are, First the first of them, in words; empty when there is none.
	Count int
	First string
}

// differ takes note of a decision with another input, or returns an error when the same build took it.
func (x *execution) differ(d *decision, ev *history.Event) error {
	recorded, now := inputsApart(ev.Input, d.input)
	want := describe(ev) + " with the input " + recorded
	got := d.String() + " with the input " + now
	if x.options.BuildID != "" && x.decidedBy == x.options.BuildID {
		return &NondeterminismError{InstanceID: x.options.InstanceID, ExecutionID: x.options.ExecutionID, EventID: ev.ID, Expected: want, Got: got}
	}
	if x.differing.Count++; x.differing.Count == 1 {
		x.differing.First = fmt.Sprintf("event #%d: history has %s, the code asks for %s", ev.ID, want, got)
	}
	return nil
}

// sameInput reports whether an input is the recorded one. One that lies elsewhere is not looked at.
func sameInput(recorded history.Payload, input json.RawMessage) bool {
	if bytes.Equal(recorded, input) {
		return true
	}
	doc, inline := recorded.Document()
	return !inline || bytes.Equal(compact(doc), compact(input))
}

// compact is a document without what says nothing.
func compact(doc json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil || b.Len() == 0 {
		return []byte("null")
	}
	return b.Bytes()
}

// inputShown is how much of an input a diagnosis shows, in bytes, and inputBefore how much of that may lie before where two part.
const (
	inputShown  = 200
	inputBefore = 60
)

// inputsApart shows where two inputs differ.
func inputsApart(recorded history.Payload, input json.RawMessage) (was, is string) {
	doc, _ := recorded.Document()
	a, b := compact(doc), compact(input)
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return excerpt(a, same), excerpt(b, same)
}

// excerpt is what stands around a place of a document.
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
