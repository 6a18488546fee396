package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DataLocation identifies the data of an external event in a committed event of its instance. Later events refer to the
// location instead of copying the data.
type DataLocation struct {
	ExecutionID string
	// Segment and EventID identify the event.
	Segment, EventID int64
	// Field is LocationInputs or LocationCarriedEvents if the data is at Index in that list of the event. Field is
	// empty if the data is in Event.Data.
	Field string
	Index int
	// Encoded is true if the data is an encoded payload and not a document.
	Encoded bool
}

// The lists of an event that contain external events.
const (
	LocationInputs        = "inputs"
	LocationCarriedEvents = "carriedEvents"
)

// A Reference to a location starts with locationPrefix. It ends with encodedSuffix if the data is an encoded payload.
const (
	locationPrefix = "x#"
	encodedSuffix  = "/sealed"
)

// String returns the location in the form of a Reference: x#<execution>/<segment>/<event>[/<field>/<index>], with the
// encodedSuffix if Encoded is true.
func (p DataLocation) String() string {
	s := fmt.Sprintf("%s%s/%d/%d", locationPrefix, p.ExecutionID, p.Segment, p.EventID)
	if p.Field != "" {
		s += fmt.Sprintf("/%s/%d", p.Field, p.Index)
	}
	if p.Encoded {
		s += encodedSuffix
	}
	return s
}

// ParseDataLocation parses the result of DataLocation.String.
func ParseDataLocation(ref string) (p DataLocation, err error) {
	bare, encoded := strings.CutSuffix(ref, encodedSuffix)
	p.Encoded = encoded
	parts := strings.Split(strings.TrimPrefix(bare, locationPrefix), "/")
	numbers := slices.Clone(parts[1:])
	if len(parts) == 5 {
		p.Field = parts[3]
		numbers = []string{parts[1], parts[2], parts[4]}
	}
	known := len(parts) == 3 || p.Field == LocationInputs || p.Field == LocationCarriedEvents
	if !strings.HasPrefix(ref, locationPrefix) || parts[0] == "" || !known {
		return DataLocation{}, fmt.Errorf("history: invalid data location %q (written by a later release?)", ref)
	}
	var n [3]int64
	for i, s := range numbers {
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil || n[i] < 0 {
			return DataLocation{}, fmt.Errorf("history: invalid data location %q: %q is not a number", ref, s)
		}
	}

	p.ExecutionID = parts[0]
	p.Segment = n[0]
	p.EventID = n[1]
	p.Index = int(n[2])
	return p, nil
}

// Refer returns a payload that refers to a document at the location.
func (p DataLocation) Refer(doc json.RawMessage) Payload {
	doc = CompactJSON(doc)
	return NewReferencePayload(Reference{Ref: p.String(), SHA256: sumOf(doc), Bytes: int64(len(doc))})
}

// Find returns the data at the location. events are the events of its segment or of its whole execution. ok is false if
// the events do not contain the location.
func (p DataLocation) Find(events []Event) (data Payload, ok bool) {
	for i := range events {
		e := &events[i]
		if e.ID != p.EventID {
			continue
		}
		switch {
		case p.Field == "":
			return e.Data, true
		case p.Field == LocationInputs && p.Index < len(e.Inputs):
			return e.Inputs[p.Index].Data, true
		case p.Field == LocationCarriedEvents && p.Index < len(e.CarriedEvents):
			return e.CarriedEvents[p.Index].Data, true
		}
		return nil, false
	}
	return nil, false
}

// IsEncoded reports whether the reference is to an encoded payload and not to a document.
func (r Reference) IsEncoded() bool { return strings.HasSuffix(r.Ref, encodedSuffix) }

// Check returns an error if doc is not the document that r refers to.
func (r Reference) Check(doc json.RawMessage) error {
	if got := sumOf(doc); got != r.SHA256 || int64(len(doc)) != r.Bytes {
		return fmt.Errorf("history: data at %s has %d bytes and SHA-256 %s; expected %d bytes and %s",
			r.Ref, len(doc), got, r.Bytes, r.SHA256)
	}
	return nil
}

// CompactJSON returns a document in the compact form that Encode writes.
func CompactJSON(doc []byte) []byte {
	if !bytes.ContainsAny(doc, " \t\r\n") {
		return doc
	}
	return appendCompact(nil, doc)
}

// HasData reports whether events of the kind contain the data of an external event or update. Later events refer to
// such data if it is large.
func (k Kind) HasData() bool {
	return k == ExternalEventRaised || k == UpdateReceived || k == UpdateAccepted
}

// EachExternalData calls f with the data of each external event and update in the event and in its lists, with its
// field and index. f may replace the data.
func (e *Event) EachExternalData(f func(field string, index int, data *Payload)) {
	if e.Kind.HasData() {
		f("", 0, &e.Data)
	}
	for i := range e.CarriedEvents {
		f(LocationCarriedEvents, i, &e.CarriedEvents[i].Data)
	}
	for i := range e.Inputs {
		if e.Inputs[i].Kind.HasData() {
			f(LocationInputs, i, &e.Inputs[i].Data)
		}
	}
}
