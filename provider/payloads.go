package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// PayloadStore stores payloads that are too large for the history. Its reads and lists are strongly consistent. The
// data under a key never changes. All methods are safe for concurrent use and return the same errors as a Provider.
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
	// ListPayloads returns up to PayloadBatchSize keys with a prefix that sort after the given key, in order. An empty
	// result means that the list has ended.
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
	// one page of keys after the given key, and returns the key for the next call, even with an error. after is empty
	// in the first call, and next is empty after the last page.
	SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error)
}

const (
	// PayloadBatchSize is the maximum number of keys that one call lists or deletes.
	PayloadBatchSize = 1000
	// MaxStoredPayloadBytes is the maximum size of a stored object. A payload has at most 32 MiB, and the rest is for
	// the overhead of a codec.
	MaxStoredPayloadBytes = 40 << 20
)

// ExecutionPayloadPrefix and MessagePayloadPrefix are the first parts of keys. Payloads of a message have the second
// prefix until the message arrives.
const (
	ExecutionPayloadPrefix = "x/"
	MessagePayloadPrefix   = "m/"
)

// PayloadPrefix returns the prefix of the keys of an execution's payloads. The prefix contains a digest, which
// distributes the keys over the partitions of a bucket.
func PayloadPrefix(executionID string) string {
	sum := sha256.Sum256([]byte(executionID))
	return fmt.Sprintf("%s%02x/%s/", ExecutionPayloadPrefix, sum[0], executionID)
}

// PayloadKey returns the key of an execution's payload with a hash.
func PayloadKey(executionID, hash string) string { return PayloadPrefix(executionID) + hash }

// ExecutionOfPayload returns the execution ID in a key, or an empty string for a payload of a message.
func ExecutionOfPayload(key string) string {
	rest, ok := strings.CutPrefix(key, ExecutionPayloadPrefix)
	if parts := strings.Split(rest, "/"); ok && len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// IsMessagePayloadKey reports whether a key belongs to a payload of a message. The receiver copies it.
func IsMessagePayloadKey(key string) bool { return strings.HasPrefix(key, MessagePayloadPrefix) }

// MessagePayloadKey returns the key of a payload with a hash in a message of a kind. id identifies the message and must
// be the same when the message is sent again.
func MessagePayloadKey(kind MessageKind, id, hash string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", kind, id, hash))
	return MessagePayloadPrefix + hex.EncodeToString(sum[:])
}
