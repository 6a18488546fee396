package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Place is where the data of an external event is in the history of its instance: in a committed event, which never
// changes. Later events have a Reference to it instead of a copy.
type Place struct {
	ExecutionID string
	// Segment is the turn's segment, by which a store finds it; EventID is the event.
	Segment, EventID int64
	// Field is PlaceInputs or PlaceCarried where the data is in that list of the event, at Index; empty: it is the
	// event's own.
	Field string
	Index int
	// Sealed: what lies there is a sealed payload, and no document.
	Sealed bool
}

// The lists of an event that hold external events.
const (
	PlaceInputs  = "inputs"
	PlaceCarried = "carriedEvents"
)

// placePrefix marks a reference to a place in history, and placeSealed ends one to a sealed payload.
const (
	placePrefix = "x#"
	placeSealed = "/sealed"
)

// String returns the place as in a Reference: x#<execution>/<segment>/<event>, and /<field>/<index> where it is in a
// list, and /sealed where what lies there is a sealed payload.
func (p Place) String() string {
	s := fmt.Sprintf("%s%s/%d/%d", placePrefix, p.ExecutionID, p.Segment, p.EventID)
	if p.Field != "" {
		s += fmt.Sprintf("/%s/%d", p.Field, p.Index)
	}
	if p.Sealed {
		s += placeSealed
	}
	return s
}

// ParsePlace is the inverse of String.
func ParsePlace(ref string) (p Place, err error) {
	bare, sealed := strings.CutSuffix(ref, placeSealed)
	p.Sealed = sealed
	parts := strings.Split(strings.TrimPrefix(bare, placePrefix), "/")
	numbers := slices.Clone(parts[1:])
	if len(parts) == 5 {
		p.Field = parts[3]
		numbers = []string{parts[1], parts[2], parts[4]}
	}
	known := len(parts) == 3 || p.Field == PlaceInputs || p.Field == PlaceCarried
	if !strings.HasPrefix(ref, placePrefix) || parts[0] == "" || !known {
		return Place{}, fmt.Errorf("history: %q is no place in a history (written by a later release?)", ref)
	}
	var n [3]int64
	for i, s := range numbers {
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil || n[i] < 0 {
			return Place{}, fmt.Errorf("history: %q is no place in a history: %q is not a number", ref, s)
		}
	}

	p.ExecutionID = parts[0]
	p.Segment = n[0]
	p.EventID = n[1]
	p.Index = int(n[2])
	return p, nil
}

// Refer makes a payload that refers to a document at the place.
func (p Place) Refer(doc json.RawMessage) Payload {
	doc = Compacted(doc)
	sum := sha256.Sum256(doc)
	return Refer(Reference{Ref: p.String(), SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(doc))})
}

// Find returns the data at the place among the events of its segment, or of its whole execution. ok is false when there
// is no such event.
func (p Place) Find(events []Event) (data Payload, ok bool) {
	for i := range events {
		e := &events[i]
		if e.ID != p.EventID {
			continue
		}
		switch {
		case p.Field == "":
			return e.Data, true
		case p.Field == PlaceInputs && p.Index < len(e.Inputs):
			return e.Inputs[p.Index].Data, true
		case p.Field == PlaceCarried && p.Index < len(e.CarriedEvents):
			return e.CarriedEvents[p.Index].Data, true
		}
		return nil, false
	}
	return nil, false
}

// ToSealed reports whether what lies at a place is a sealed payload, and no document.
func (r Reference) ToSealed() bool { return strings.HasSuffix(r.Ref, placeSealed) }

// Check returns an error unless a document is the one that is referred to.
func (r Reference) Check(doc json.RawMessage) error {
	sum := sha256.Sum256(doc)
	if got := hex.EncodeToString(sum[:]); got != r.SHA256 || int64(len(doc)) != r.Bytes {
		return fmt.Errorf("history: what lies at %s has %d bytes and the hash %s, referred to were %d bytes with %s", r.Ref, len(doc), got, r.Bytes, r.SHA256)
	}
	return nil
}

// Compacted returns a document as encoding writes it.
func Compacted(doc []byte) []byte {
	if !bytes.ContainsAny(doc, " \t\r\n") {
		return doc
	}
	return appendCompact(nil, doc)
}

// HasData reports whether an event of the kind has brought the document of a sender, of an external event or an update:
// where it is large, later events refer to it.
func (k Kind) HasData() bool {
	return k == ExternalEventRaised || k == UpdateReceived || k == UpdateAccepted
}

// Raised calls f with each document that external events and updates have brought in an event, its own and those in its
// lists, and with its field and index: f may replace it.
func (e *Event) Raised(f func(field string, index int, data *Payload)) {
	if e.Kind.HasData() {
		f("", 0, &e.Data)
	}
	for i := range e.CarriedEvents {
		f(PlaceCarried, i, &e.CarriedEvents[i].Data)
	}
	for i := range e.Inputs {
		if e.Inputs[i].Kind.HasData() {
			f(PlaceInputs, i, &e.Inputs[i].Data)
		}
	}
}
