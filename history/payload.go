package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Payload is what a user's program put in: a JSON document, kept inline, or a Reference to where it lies.
// A nil Payload is no value at all.
type Payload []byte

// Reference says where a payload lies that was too large to be kept inline.
type Reference struct {
	Ref    string `json:"ref"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// escaped wraps an inline document that would otherwise be read as a reference, or as an escape.
type escaped struct {
	Inline json.RawMessage `json:"inline"`
}

// Inline makes a payload of a JSON document. Documents that look like a reference are escaped, so that what a user wrote
// always comes back as it was.
func Inline(doc json.RawMessage) Payload {
	if !ambiguous(doc) {
		return Payload(doc)
	}
	b, err := json.Marshal(escaped{doc})
	if err != nil {
		return Payload(doc) // not JSON: encoding the event will say so
	}
	return Payload(b)
}

// Refer makes a payload of a reference.
func Refer(r Reference) Payload {
	b, _ := json.Marshal(r) //nolint:errchkjson // strings and a number: cannot fail
	return Payload(b)
}

// Document returns the inline document. ok is false when the payload is a reference.
func (p Payload) Document() (doc json.RawMessage, ok bool) {
	if !ambiguous(p) {
		return json.RawMessage(p), true
	}
	if _, ref := p.Reference(); ref {
		return nil, false
	}
	var e escaped
	if strict(p, &e) == nil && e.Inline != nil {
		return e.Inline, true
	}
	return json.RawMessage(p), true
}

// Reference returns where the payload lies. ok is false when it is inline.
func (p Payload) Reference() (r Reference, ok bool) {
	if !ambiguous(p) || strict(p, &r) != nil || r.Ref == "" || r.SHA256 == "" {
		return Reference{}, false
	}
	return r, true
}

// ambiguous says, cheaply, whether the document needs a closer look: objects whose first key is ours.
func ambiguous(doc []byte) bool {
	rest := bytes.TrimLeft(doc, " \t\r\n")
	if len(rest) == 0 || rest[0] != '{' {
		return false
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	for _, key := range []string{`"ref"`, `"sha256"`, `"bytes"`, `"inline"`} {
		if bytes.HasPrefix(rest, []byte(key)) {
			return true
		}
	}
	return false
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("history: payload: %w", err)
	}
	return nil
}

// MarshalJSON writes the document as it is.
func (p Payload) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("null"), nil
	}
	return p, nil
}

// UnmarshalJSON keeps the document as it is.
func (p *Payload) UnmarshalJSON(b []byte) error {
	if p == nil {
		return errors.New("history: UnmarshalJSON on nil Payload")
	}
	*p = append((*p)[:0], b...)
	return nil
}
