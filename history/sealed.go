package history

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Sealed is a payload whose document only a codec, or the store of large payloads, can give. It travels as a Reference, so that a release which does
// not know of it takes it for what it cannot read, and never for a document.
type Sealed struct {
	// Codec is the id of the codec that has encoded the document; empty: none has.
	Codec string
	// Data is what the codec has made of the document, kept inline; nil where that lies in the store.
	Data []byte
	// Key is where it lies in the store; empty: it is inline.
	Key string
	// Digest is what the codec has made of the document's SHA-256, of a document that is encoded and in the store: so that a replay can compare
	// it without fetching it.
	Digest []byte
	// SHA256 is of what is stored, in hex, and Bytes the size of the document.
	SHA256 string
	Bytes  int64
}

// What a Reference of a sealed payload begins with: a payload inline, as data:<codec>;<base64>, or in the store, as
// object:<key> or object:<key>;<codec>;<base64 of the digest>.
const (
	sealedInline = "data:"
	sealedObject = "object:"
)

// MaxCodecIDBytes is the limit of a codec's id.
const MaxCodecIDBytes = 64

// IsCodecID reports whether a text may be the id of a codec: 1 to MaxCodecIDBytes letters, digits, dots, dashes and underlines.
func IsCodecID(id string) bool {
	if id == "" || len(id) > MaxCodecIDBytes {
		return false
	}
	return strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// Payload is the sealed document as a payload.
func (s Sealed) Payload() Payload {
	r := Reference{SHA256: s.SHA256, Bytes: s.Bytes}
	switch {
	case s.Key == "":
		if r.SHA256 == "" {
			r.SHA256 = sumOf(s.Data)
		}
		r.Ref = sealedInline + s.Codec + ";" + base64.StdEncoding.EncodeToString(s.Data)
	case s.Codec == "":
		r.Ref = sealedObject + s.Key
	default:
		r.Ref = sealedObject + s.Key + ";" + s.Codec + ";" + base64.StdEncoding.EncodeToString(s.Digest)
	}
	return Refer(r)
}

// Sealed returns how a payload is sealed. ok is false where it is not, and where it is sealed in a way that this release does not know.
func (p Payload) Sealed() (s Sealed, ok bool) {
	r, refers := p.Reference()
	if !refers {
		return s, false
	}
	s.SHA256, s.Bytes = r.SHA256, r.Bytes
	if rest, inline := strings.CutPrefix(r.Ref, sealedInline); inline {
		codec, data, found := strings.Cut(rest, ";")
		s.Codec = codec
		var err error
		s.Data, err = base64.StdEncoding.DecodeString(data)
		return s, found && err == nil && IsCodecID(codec)
	}

	rest, stored := strings.CutPrefix(r.Ref, sealedObject)
	if !stored || rest == "" {
		return s, false
	}
	parts := strings.Split(rest, ";")
	s.Key = parts[0]
	switch len(parts) {
	case 1:
		return s, true
	case 3:
		s.Codec = parts[1]
		var err error
		s.Digest, err = base64.StdEncoding.DecodeString(parts[2])
		return s, err == nil && IsCodecID(s.Codec)
	default:
		return s, false
	}
}

// IsSealed is Sealed without a look at what is sealed.
func (p Payload) IsSealed() bool {
	if !ambiguous(p) {
		return false
	}
	_, ok := p.Sealed()
	return ok
}

// StoredAt returns under which key of the store of large payloads it lies; empty where it does not lie there.
func (p Payload) StoredAt() string {
	if !ambiguous(p) {
		return ""
	}
	s, _ := p.Sealed()
	return s.Key
}

// Check returns an error unless data is what is stored.
func (s Sealed) Check(data []byte) error {
	if got := sumOf(data); got != s.SHA256 {
		return &alteredError{key: s.Key, want: s.SHA256, got: got, bytes: len(data)}
	}
	return nil
}

// alteredError is about a payload that is not what was stored.
type alteredError struct {
	key, want, got string
	bytes          int
}

func (e *alteredError) Error() string {
	where := "inline"
	if e.key != "" {
		where = "at " + e.key
	}
	return "history: the sealed payload " + where + " has the hash " + e.got + ", stored was one with " + e.want
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// referable returns what a reference to a place can stand for: the document, or the payload itself where that is sealed and inline.
func (p Payload) referable() (doc json.RawMessage, sealed, ok bool) {
	if doc, ok = p.Document(); ok {
		return doc, false, true
	}
	if s, is := p.Sealed(); is && s.Key == "" {
		return json.RawMessage(p), true, true
	}
	return nil, false, false
}

// Referable returns what may be replaced by a reference to the place where it lies: a document, or a sealed payload that is inline. ok is false for
// what is elsewhere already.
func (p Payload) Referable() (doc json.RawMessage, ok bool) {
	doc, _, ok = p.referable()
	return doc, ok
}

// ReferTo makes a payload that refers to data at the place. What cannot be referred to comes back.
func (p Place) ReferTo(data Payload) Payload {
	doc, sealed, ok := data.referable()
	if !ok {
		return data
	}
	p.Sealed = sealed
	return p.Refer(doc)
}

// DocumentIn returns what a reference to the place stands for, among the events of its segment or of its whole execution: of a sealed place the
// payload. ok is false where it is not there.
func (p Place) DocumentIn(events []Event) (doc json.RawMessage, ok bool) {
	data, found := p.Find(events)
	if !found {
		return nil, false
	}
	doc, sealed, ok := data.referable()
	return doc, ok && sealed == p.Sealed
}

// PayloadOf is what a reference to a place stands for, as a payload: doc is what lies there.
func (r Reference) PayloadOf(doc json.RawMessage) Payload {
	if r.ToSealed() {
		return Payload(doc)
	}
	return Inline(doc)
}
