package worktoken

import "github.com/perdure/perdure/provider"

// A completion token differs from the token of a work item. The worker creates it when the activity runs, and no
// message contains it. Its format is `c1.<key>.<text>`. It binds the hub, the instance, the queue, the execution, the
// segment, the activity and the attempt. It expires when its attempt ends, not after a time.
const (
	completionToken = "c1"
	// maxCompletionBytes is larger than a token with the longest instance ID.
	maxCompletionBytes = 4 << 10
)

// SignCompletion returns the completion token of an attempt. The token is a secret, because its holder can complete the
// attempt. Do not log it.
func (t *Signer) SignCompletion(w *provider.WorkItem) string {
	m := t.last.macs.Get().(*tokenMAC) //nolint:forcetypeassert // the pool has nothing else
	defer t.last.macs.Put(m)

	b := append(m.bytes[:0], completionToken...) //nolint:gocritic // encode keeps the buffer
	b = appendText(appendText(b, t.hub), w.InstanceID)
	return t.encode(m, completionToken, appendAttempt(b, w), len(completionToken))
}

// VerifyCompletion decodes a completion token and returns a work item with the signed fields. It returns a
// *ForeignTokenError if the token names another hub, and ErrInvalidToken if the token is malformed or was signed with
// another key.
func (t *Signer) VerifyCompletion(token string) (w provider.WorkItem, err error) {
	p, ok := parse(token, completionToken, maxCompletionBytes)
	if !ok {
		return w, provider.ErrInvalidToken
	}
	attempt, ok := readTexts(p.claims, &w.Hub, &w.InstanceID)
	switch {
	case !ok || !readAttempt(attempt, &w):
		return provider.WorkItem{}, provider.ErrInvalidToken
	case w.Hub != t.hub:
		return provider.WorkItem{}, &provider.ForeignTokenError{Hub: w.Hub, Own: t.hub}
	case !t.hasSigned(&p):
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	return w, nil
}
