package worktoken

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/perdure/perdure/provider"
)

// A completion token is of another kind than the token of a work item, which every copy of the work item contains. It
// is created where the activity runs, and is in no message. It is `c1.<key>.<text>`, and binds the hub, the instance,
// the queue, the execution, the segment, the activity and the attempt. It expires with its attempt, not with time.
const (
	completionToken = "c1"
	// maxCompletionBytes exceeds the size of a token with the longest instance ID.
	maxCompletionBytes = 4 << 10
)

// SignCompletion returns the completion token of an attempt. The token is a secret: its holder can complete the
// attempt. Do not log it.
func (t *Signer) SignCompletion(w *provider.WorkItem) string {
	m := t.last.macs.Get().(*tokenMAC) //nolint:forcetypeassert // the pool has nothing else
	defer t.last.macs.Put(m)

	b := m.bytes[:0]
	b = append(b, completionToken...)
	for _, text := range []string{t.hub, w.InstanceID, w.Queue, w.ExecutionID} {
		b = appendText(b, text)
	}
	b = binary.AppendUvarint(b, uint64(w.Segment))
	b = binary.AppendUvarint(b, uint64(w.ActivityID))
	b = binary.AppendUvarint(b, uint64(w.Attempt))
	m.bytes = m.sum(b)
	claims := m.bytes[len(completionToken) : len(b)+macBytes]
	return completionToken + "." + t.last.id + "." + base64.RawURLEncoding.EncodeToString(claims)
}

// VerifyCompletion decodes a completion token and returns a work item with the signed fields. It returns a
// *ForeignTokenError if the token names another hub, and ErrInvalidToken if the token is malformed or was signed with
// another key.
func (t *Signer) VerifyCompletion(token string) (provider.WorkItem, error) {
	kind, rest, _ := strings.Cut(token, ".")
	id, text, _ := strings.Cut(rest, ".")
	// line breaks, which the decoder would ignore
	if len(token) > maxCompletionBytes || kind != completionToken || strings.ContainsAny(text, "\r\n") {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= macBytes {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	claims, mac := b[:len(b)-macBytes], b[len(b)-macBytes:]
	w, err := readCompletion(claims)
	if err != nil {
		return provider.WorkItem{}, err
	}
	if w.Hub != t.hub {
		return provider.WorkItem{}, &provider.ForeignTokenError{Hub: w.Hub, Own: t.hub}
	}

	key := t.keys[id]
	if key == nil {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	m := key.macs.Get().(*tokenMAC) //nolint:forcetypeassert // the pool has nothing else
	defer key.macs.Put(m)
	m.bytes = append(append(m.bytes[:0], completionToken...), claims...)
	signed := len(m.bytes)
	m.bytes = m.sum(m.bytes)
	if !hmac.Equal(mac, m.bytes[signed:signed+macBytes]) {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	return w, nil
}

// readCompletion decodes the claims of a completion token, signed or not.
func readCompletion(b []byte) (w provider.WorkItem, err error) {
	var hub, instanceID string
	for _, into := range []*string{&hub, &instanceID} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return provider.WorkItem{}, provider.ErrInvalidToken
		}
		*into = string(b[size : size+int(n)])
		b = b[size+int(n):]
	}
	if w, err = readClaims(b); err != nil {
		return provider.WorkItem{}, err
	}
	w.Hub, w.InstanceID = hub, instanceID
	return w, nil
}
