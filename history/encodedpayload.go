package history

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// EncodedPayload is an encoded payload, or a payload in the payload store. It is stored as a Reference.
type EncodedPayload struct {
	// Codec is the ID of the codec that encoded the document. It is empty if the document is not encoded.
	Codec string
	// Data is the encoded document, if it is stored inline. It is nil if the document is in the payload store.
	Data []byte
	// Key is the key in the payload store. It is empty if the payload is inline.
	Key string
	// Digest is the encoded SHA-256 of an encoded document in the payload store. A replay uses it to compare documents
	// without fetching them.
	Digest []byte
	// SHA256 is the hash of the stored data in hexadecimal. Bytes is the size of the document in bytes.
	SHA256 string
	Bytes  int64
}

// The prefixes of the Reference of an encoded payload. An inline payload has the form data:<codec>;<base64>. A payload
// in the payload store has the form object:<key> or object:<key>;<codec>;<base64 of the digest>.
const (
	inlinePrefix = "data:"
	objectPrefix = "object:"
)

// MaxCodecIDBytes is the maximum size of a codec's ID.
const MaxCodecIDBytes = 64

// IsCodecID reports whether id is a valid ID of a codec: 1 to MaxCodecIDBytes letters, digits, dots, dashes and
// underscores.
func IsCodecID(id string) bool {
	if id == "" || len(id) > MaxCodecIDBytes {
		return false
	}
	return strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// Payload returns s as a payload.
func (s EncodedPayload) Payload() Payload {
	r := Reference{SHA256: s.SHA256, Bytes: s.Bytes}
	switch {
	case s.Key == "":
		if r.SHA256 == "" {
			r.SHA256 = sumOf(s.Data)
		}
		r.Ref = inlinePrefix + s.Codec + ";" + base64.StdEncoding.EncodeToString(s.Data)
	case s.Codec == "":
		r.Ref = objectPrefix + s.Key
	default:
		r.Ref = objectPrefix + s.Key + ";" + s.Codec + ";" + base64.StdEncoding.EncodeToString(s.Digest)
	}
	return NewReferencePayload(r)
}

// Encoded returns the EncodedPayload that the payload refers to. ok is false if the payload is an inline document or
// has an encoding that this release does not know. The result is then empty.
func (p Payload) Encoded() (s EncodedPayload, ok bool) {
	r, refers := p.Reference()
	if !refers {
		return EncodedPayload{}, false
	}
	if rest, inline := strings.CutPrefix(r.Ref, inlinePrefix); inline {
		codec, text, found := strings.Cut(rest, ";")
		data, err := base64.StdEncoding.DecodeString(text)
		if !found || err != nil || !IsCodecID(codec) {
			return EncodedPayload{}, false
		}
		return EncodedPayload{Codec: codec, Data: data, SHA256: r.SHA256, Bytes: r.Bytes}, true
	}

	rest, stored := strings.CutPrefix(r.Ref, objectPrefix)
	key, encoding, encoded := strings.Cut(rest, ";")
	if !stored || key == "" {
		return EncodedPayload{}, false
	}
	s = EncodedPayload{Key: key, SHA256: r.SHA256, Bytes: r.Bytes}
	if !encoded {
		return s, true
	}
	codec, text, found := strings.Cut(encoding, ";")
	digest, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || !IsCodecID(codec) {
		return EncodedPayload{}, false
	}
	s.Codec, s.Digest = codec, digest
	return s, true
}

// IsEncoded reports whether the payload is an EncodedPayload.
func (p Payload) IsEncoded() bool {
	if !ambiguous(p) {
		return false
	}
	_, ok := p.Encoded()
	return ok
}

// StorageKey returns the key of the payload in the payload store, or an empty string.
func (p Payload) StorageKey() string {
	if !ambiguous(p) {
		return ""
	}
	s, _ := p.Encoded()
	return s.Key
}

// Check returns an error if data is not the stored data.
func (s EncodedPayload) Check(data []byte) error {
	if got := sumOf(data); got != s.SHA256 {
		where := "inline"
		if s.Key != "" {
			where = "at " + s.Key
		}
		return fmt.Errorf("history: encoded payload %s has SHA-256 %s; expected %s", where, got, s.SHA256)
	}
	return nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// referable returns the data that a reference can replace. It is the document, or the whole payload if the payload is
// encoded and inline.
func (p Payload) referable() (doc json.RawMessage, encoded, ok bool) {
	if doc, ok = p.Document(); ok {
		return doc, false, true
	}
	if s, is := p.Encoded(); is && s.Key == "" {
		return json.RawMessage(p), true, true
	}
	return nil, false, false
}

// Referable returns the data that a reference to its location can replace, which is a document or an inline encoded
// payload. ok is false if the data is already stored elsewhere.
func (p Payload) Referable() (doc json.RawMessage, ok bool) {
	doc, _, ok = p.referable()
	return doc, ok
}

// ReferTo returns a payload that refers to data at the location. If a reference cannot replace data, ReferTo returns
// data unchanged.
func (p DataLocation) ReferTo(data Payload) Payload {
	doc, encoded, ok := data.referable()
	if !ok {
		return data
	}
	p.Encoded = encoded
	return p.Refer(doc)
}

// DocumentIn returns the data at the location in the form that a reference refers to. It is a document, or the whole
// payload if Encoded is true. events are the events of its segment or of its whole execution. ok is false if the events
// do not contain the data.
func (p DataLocation) DocumentIn(events []Event) (doc json.RawMessage, ok bool) {
	data, found := p.Find(events)
	if !found {
		return nil, false
	}
	doc, encoded, ok := data.referable()
	return doc, ok && encoded == p.Encoded
}

// PayloadOf returns the data at the location of a reference as a payload.
func (r Reference) PayloadOf(doc json.RawMessage) Payload {
	if r.IsEncoded() {
		return Payload(doc)
	}
	return NewInlinePayload(doc)
}
