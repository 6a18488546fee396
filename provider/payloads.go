package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Payloads is a store of payloads that are too large for histories and messages, such as a bucket. It reads what it has written, and lists what there is:
// strongly consistent. What lies under a key never changes. All methods are safe for concurrent use; their errors are those of a Provider.
type Payloads interface {
	// PutPayload stores data under a key. Repeating it is harmless.
	PutPayload(ctx context.Context, key string, data []byte) error
	// GetPayload reads what lies under a key, MaxStoredPayload at the most. It returns ErrNotFound when nothing does.
	GetPayload(ctx context.Context, key string) ([]byte, error)
	// CopyPayload stores what lies under one key under another as well. It returns ErrNotFound when nothing lies there.
	CopyPayload(ctx context.Context, from, to string) error
	// DeletePayloads deletes what lies under keys, up to PayloadsAtOnce of them. There need not be any.
	DeletePayloads(ctx context.Context, keys ...string) error
	// ListPayloads lists the keys that begin with prefix and are behind after, in their order, up to PayloadsAtOnce. There are no more where it
	// returns none.
	ListPayloads(ctx context.Context, prefix, after string) ([]StoredPayload, error)
}

// StoredPayload is a key of a store, and when something was stored under it last.
type StoredPayload struct {
	Key      string
	StoredAt time.Time
}

// PayloadKeeper is a Provider that has a store of large payloads, or may have one.
type PayloadKeeper interface {
	// Payloads returns the store; nil where there is none: then payloads are limited to what fits histories.
	Payloads() Payloads
	// SweepPayloads deletes payloads, two days old or more, of executions that are not there: they never were, or are deleted. Who stored them has died
	// before it had stored what refers to them, or was late. It looks at a page of what is behind a key, and returns where to go on, also with an error; an
	// empty key is the beginning, and the end.
	SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error)
}

const (
	// PayloadsAtOnce is the most keys that one call lists or deletes.
	PayloadsAtOnce = 1000
	// MaxStoredPayload is the limit of what is stored under a key: a payload of 32 MiB, and what a codec may add to it.
	MaxStoredPayload = 40 << 20
)

// The first parts of keys: payloads of executions, and what is on its way in messages.
const (
	PayloadsOfExecutions = "x/"
	PayloadsMailed       = "m/"
)

// PayloadPrefix is what the keys of an execution's payloads begin with: they go with its history. The digest before the execution spreads them: ids of
// executions are in the order of time, and a bucket takes 3,500 writes and 5,500 reads a second for each part of its keys that it has split.
func PayloadPrefix(executionID string) string {
	sum := sha256.Sum256([]byte(executionID))
	return fmt.Sprintf("%s%02x/%s/", PayloadsOfExecutions, sum[0], executionID)
}

// PayloadKey is the key of an execution's payload with a hash.
func PayloadKey(executionID, hash string) string { return PayloadPrefix(executionID) + hash }

// ExecutionOfPayload returns whose payload a key has; empty for what is on its way.
func ExecutionOfPayload(key string) string {
	rest, ok := strings.CutPrefix(key, PayloadsOfExecutions)
	if parts := strings.Split(rest, "/"); ok && len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// MailedPayload reports whether a key is of what is on its way to an instance, which copies it when it takes it.
func MailedPayload(key string) bool { return strings.HasPrefix(key, PayloadsMailed) }

// MailKey is the key of a payload with a hash that is on its way in a message: of its kind, and with what makes it the same message when it is sent again.
func MailKey(kind MessageKind, id, hash string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", kind, id, hash))
	return PayloadsMailed + hex.EncodeToString(sum[:])
}

// Mail calls f with the keys under which payloads of an event lie in a store, and are sent to another instance, or to who has asked for an update. Who commits the
// event copies them before: so the message is good for as long as it can be on its way, whatever becomes of its sender.
func Mail(x Origin, e *history.Event, f func(from, to string)) {
	send := func(own, sent history.Payload) {
		if from := own.StoredAt(); from != "" {
			f(from, sent.StoredAt())
		}
	}
	switch {
	case e.Kind == history.SubOrchestrationScheduled, e.Kind == history.DetachedOrchestrationScheduled:
		send(e.Input, startOf(x, e).Input)
	case e.Kind == history.ExternalEventSent:
		send(e.Data, eventOf(x, e).Data)
	case e.Kind == history.UpdateSent:
		m := updateOf(x, e)
		send(e.Data, m.Data)
		send(e.Input, m.Input)
	case e.Kind == history.UpdateCompleted:
		send(e.Result, AnswerOf(x, e).Result)
	case e.Kind == history.OrchestrationCompleted && x.Parent != nil:
		send(e.Output, outcomeFor(x, e).Result)
	}
}

// mailed is a payload as it is sent: of one that lies in the store, a copy of its own for the message.
func mailed(p history.Payload, kind MessageKind, id string) history.Payload {
	if p.StoredAt() == "" {
		return p
	}
	s, _ := p.Sealed()
	s.Key = MailKey(kind, id, s.SHA256)
	return s.Payload()
}
