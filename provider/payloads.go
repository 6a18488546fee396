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

// PayloadStore is a payload store. Its reads and lists are strongly consistent. The data under a key never changes. All
// methods are safe for concurrent use and return the same errors as a Provider.
type PayloadStore interface {
	// PutPayload stores data under a key. It is idempotent.
	PutPayload(ctx context.Context, key string, data []byte) error
	// GetPayload reads the data under a key, up to MaxStoredPayloadBytes bytes. It returns ErrNotFound if the key does
	// not exist.
	GetPayload(ctx context.Context, key string) ([]byte, error)
	// CopyPayload copies the data of one key to another. It returns ErrNotFound if the key does not exist.
	CopyPayload(ctx context.Context, from, to string) error
	// DeletePayloads deletes up to PayloadBatchSize keys. Keys that do not exist are ignored.
	DeletePayloads(ctx context.Context, keys ...string) error
	// ListPayloads returns up to PayloadBatchSize keys with a prefix that sort after the given key, in order. The list
	// has ended if it returns none.
	ListPayloads(ctx context.Context, prefix, after string) ([]StoredPayload, error)
}

// StoredPayload is a key of a payload store and the time of its last write.
type StoredPayload struct {
	Key      string
	StoredAt time.Time
}

// PayloadStoreProvider is an optional interface of a Provider that can have a payload store.
type PayloadStoreProvider interface {
	// Payloads returns the payload store. If it is nil, payloads are limited to the size that fits histories.
	Payloads() PayloadStore
	// SweepPayloads deletes payloads that are at least two days old and whose execution does not exist. It processes
	// one page of keys after the given key, and returns the key from which to continue, even with an error. An empty
	// key is the start, and the end.
	SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error)
}

const (
	// PayloadBatchSize is the maximum number of keys that one call lists or deletes.
	PayloadBatchSize = 1000
	// MaxStoredPayloadBytes is the maximum size of an object: a payload of 32 MiB with the overhead of a codec.
	MaxStoredPayloadBytes = 40 << 20
)

// The first parts of keys: payloads of executions, and payloads of messages that have not arrived.
const (
	ExecutionPayloadPrefix = "x/"
	MessagePayloadPrefix   = "m/"
)

// PayloadPrefix returns the prefix of the keys of an execution's payloads. It contains a digest, which spreads the keys
// over the partitions of a bucket.
func PayloadPrefix(executionID string) string {
	sum := sha256.Sum256([]byte(executionID))
	return fmt.Sprintf("%s%02x/%s/", ExecutionPayloadPrefix, sum[0], executionID)
}

// PayloadKey returns the key of an execution's payload with a hash.
func PayloadKey(executionID, hash string) string { return PayloadPrefix(executionID) + hash }

// ExecutionOfPayload returns the execution in a key, or an empty string for a payload of a message.
func ExecutionOfPayload(key string) string {
	rest, ok := strings.CutPrefix(key, ExecutionPayloadPrefix)
	if parts := strings.Split(rest, "/"); ok && len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// IsMessagePayloadKey reports whether a key belongs to a payload of a message. The receiver copies it.
func IsMessagePayloadKey(key string) bool { return strings.HasPrefix(key, MessagePayloadPrefix) }

// MessagePayloadKey returns the key of a payload with a hash in a message of a kind. id identifies the message, and is
// the same when the message is sent again.
func MessagePayloadKey(kind MessageKind, id, hash string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", kind, id, hash))
	return MessagePayloadPrefix + hex.EncodeToString(sum[:])
}

// EachMessagePayload calls f for the payloads of an event that are sent to another instance or returned as the result
// of an update. Its arguments are the key in the sender's execution and the key of the copy. The copies are made before
// the event is committed, so that the message does not depend on its sender.
func EachMessagePayload(x Origin, e *history.Event, f func(from, to string)) {
	send := func(own, sent history.Payload) {
		if from := own.StorageKey(); from != "" {
			f(from, sent.StorageKey())
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
		send(e.Result, UpdateResultOf(x, e).Result)
	case e.Kind == history.OrchestrationCompleted && x.Parent != nil:
		send(e.Output, outcomeFor(x, e).Result)
	}
}

// sentPayload returns a payload in the form in which it is sent. A payload in the payload store is replaced by a
// reference to a copy for the message.
func sentPayload(p history.Payload, kind MessageKind, id string) history.Payload {
	if p.StorageKey() == "" {
		return p
	}
	s, _ := p.Encoded()
	s.Key = MessagePayloadKey(kind, id, s.SHA256)
	return s.Payload()
}
