// Package worktoken signs and verifies the tokens of a hub's work items, and the tokens that complete activities
// asynchronously.
package worktoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"
	"sync"

	"github.com/perdure/perdure/provider"
)

// Signer signs and verifies the tokens of a hub's work items (WorkItem.Token). A token has the format
// `w1.<key>.<text>`. w1 is the kind and the version of the text, and key is the ID of the signing key. text is the
// signed data and the first 16 bytes of its HMAC-SHA256, in base64url without padding.
//
// A token binds the hub, the queue, the execution, the segment, the activity and the attempt. It does not bind the
// message, so all copies of a work item have the same token. A token never expires. It proves that the hub has sent
// such a work item. It does not prove that the caller holds a message. The receipt handle proves this, and the queue
// checks it. If a caller combines a token with the receipt handle of another message of the same queue, the lock of
// that message is extended. The call then returns the cancellation of the token's activity.
//
// A Signer is safe for concurrent use.
type Signer struct {
	hub  string
	keys map[string]*Key
	last *Key
}

// NewSigner returns the signer of a hub. The last key signs, and all keys verify. At least one key is required, and the
// IDs of the keys must be unique.
func NewSigner(hub string, keys ...*Key) *Signer {
	t := &Signer{hub: hub, keys: map[string]*Key{}, last: keys[len(keys)-1]}
	for _, k := range keys {
		t.keys[k.id] = k
	}
	return t
}

// Key is a signing key.
type Key struct {
	id   string
	macs sync.Pool
}

// NewKey returns a key with a secret. id is part of each token and must not contain a dot.
func NewKey(id string, secret []byte) *Key {
	k := &Key{id: id}
	k.macs.New = func() any { return &tokenMAC{hash: hmac.New(sha256.New, secret)} }
	return k
}

// tokenMAC is a hash with reusable buffers, because a turn can sign a hundred thousand tokens.
type tokenMAC struct {
	hash        hash.Hash
	bytes, text []byte
}

const (
	workItemToken = "w1"
	macBytes      = 16 // 2^128 guesses, each with a call, are not feasible
	maxTokenBytes = 1 << 10
)

// Sign returns the token of a work item.
func (t *Signer) Sign(w *provider.WorkItem) string {
	m := t.last.macs.Get().(*tokenMAC) //nolint:forcetypeassert // the pool has nothing else
	defer t.last.macs.Put(m)

	b := appendText(append(m.bytes[:0], workItemToken...), t.hub)
	claims := len(b) // the hub is signed but omitted, because every verifier knows it
	return t.encode(m, workItemToken, appendAttempt(b, w), claims)
}

// encode signs b with the last key, and returns a token with the part of b that starts at claims.
func (t *Signer) encode(m *tokenMAC, kind string, b []byte, claims int) string {
	m.bytes = m.sum(b)
	m.text = append(append(append(append(m.text[:0], kind...), '.'), t.last.id...), '.')
	m.text = base64.RawURLEncoding.AppendEncode(m.text, m.bytes[claims:len(b)+macBytes])
	return string(m.text)
}

// sum appends the MAC of b to it.
func (m *tokenMAC) sum(b []byte) []byte {
	m.hash.Reset()
	m.hash.Write(b)
	return m.hash.Sum(b)
}

// appendAttempt appends the claims that both kinds of tokens contain.
func appendAttempt(b []byte, w *provider.WorkItem) []byte {
	b = appendText(appendText(b, w.Queue), w.ExecutionID)
	b = binary.AppendUvarint(b, uint64(w.Segment))
	b = binary.AppendUvarint(b, uint64(w.ActivityID))
	return binary.AppendUvarint(b, uint64(w.Attempt))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Verify verifies a token and returns a work item with the signed fields. It returns ErrInvalidToken if the token is
// malformed, belongs to another hub, or was signed with another key.
func (t *Signer) Verify(token string) (w provider.WorkItem, err error) {
	p, ok := parse(token, workItemToken, maxTokenBytes)
	if !ok || !t.hasSigned(&p) || !readAttempt(p.claims, &w) {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	return w, nil
}

// parsed is a token that is not verified.
type parsed struct {
	kind, key   string
	claims, mac []byte
}

func parse(token, kind string, longest int) (p parsed, ok bool) {
	got, rest, _ := strings.Cut(token, ".")
	key, text, _ := strings.Cut(rest, ".")
	// reject line breaks, because the decoder ignores them
	if len(token) > longest || got != kind || strings.ContainsAny(text, "\r\n") {
		return p, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= macBytes {
		return p, false
	}
	n := len(b) - macBytes
	return parsed{kind: kind, key: key, claims: b[:n], mac: b[n:]}, true
}

// hasSigned reports whether one of the hub's keys has signed a token.
func (t *Signer) hasSigned(p *parsed) bool {
	key := t.keys[p.key]
	if key == nil {
		return false
	}
	m := key.macs.Get().(*tokenMAC) //nolint:forcetypeassert // the pool has nothing else
	defer key.macs.Put(m)

	b := append(m.bytes[:0], p.kind...) //nolint:gocritic // the buffer is kept below
	if p.kind == workItemToken {
		b = appendText(b, t.hub)
	}
	b = append(b, p.claims...)
	m.bytes = m.sum(b)
	return hmac.Equal(p.mac, m.bytes[len(b):len(b)+macBytes])
}

// readAttempt decodes the claims of appendAttempt.
func readAttempt(b []byte, w *provider.WorkItem) bool {
	b, ok := readTexts(b, &w.Queue, &w.ExecutionID)
	if !ok {
		return false
	}
	var numbers [3]uint64
	for i := range numbers {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return false
		}
		numbers[i] = v
		b = b[size:]
	}
	w.V, w.Segment, w.ActivityID = provider.WireVersion, int64(numbers[0]), int64(numbers[1])
	w.Attempt = int(numbers[2])
	return len(b) == 0
}

// readTexts decodes texts and returns the remaining bytes.
func readTexts(b []byte, into ...*string) (rest []byte, ok bool) {
	for _, text := range into {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, false
		}
		*text = string(b[size : size+int(n)])
		b = b[size+int(n):]
	}
	return b, true
}
