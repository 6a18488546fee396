// Package payloadstore stores payloads outside the history, in the S3 bucket of a hub.
package payloadstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// Store implements provider.PayloadStore in the hub's bucket. The hub's name is the prefix of the keys, so that hubs
// can share a bucket.
type Store struct {
	bucket Bucket
	name   string
	prefix string
	now    func() time.Time
}

// New returns the payload store of a hub in a bucket, or nil if the name of the bucket is empty.
func New(b Bucket, name, hub string, now func() time.Time) *Store {
	if name == "" || b == nil {
		return nil
	}
	return &Store{bucket: b, name: name, prefix: hub + "/", now: now}
}

// Bucket contains the S3 calls of a Store.
type Bucket interface {
	PutObject(ctx context.Context, bucket, key string, data []byte) error
	// GetObject reads an object of up to most bytes. It returns provider.ErrNotFound if the object does not exist.
	GetObject(ctx context.Context, bucket, key string, most int64) ([]byte, error)
	// CopyObject copies an object within a bucket. It returns provider.ErrNotFound if the object does not exist.
	CopyObject(ctx context.Context, bucket, from, to string) error
	// DeleteObjects deletes up to 1,000 objects. Objects that do not exist are ignored.
	DeleteObjects(ctx context.Context, bucket string, keys []string) error
	// ListObjects returns up to 1,000 keys with a prefix that sort after the given key, in byte order.
	ListObjects(ctx context.Context, bucket, prefix, after string) ([]provider.StoredPayload, error)
}

// PutPayload implements provider.PayloadStore.
func (s *Store) PutPayload(ctx context.Context, key string, data []byte) error {
	return s.call(ctx, "S3.PutObject", key, func() error { return s.bucket.PutObject(ctx, s.name, s.prefix+key, data) })
}

// GetPayload implements provider.PayloadStore.
func (s *Store) GetPayload(ctx context.Context, key string) (data []byte, err error) {
	err = s.call(ctx, "S3.GetObject", key, func() error {
		data, err = s.bucket.GetObject(ctx, s.name, s.prefix+key, provider.MaxStoredPayloadBytes)
		return err
	})
	return data, err
}

// CopyPayload implements provider.PayloadStore.
func (s *Store) CopyPayload(ctx context.Context, from, to string) error {
	return s.call(
		ctx, "S3.CopyObject", from,
		func() error { return s.bucket.CopyObject(ctx, s.name, s.prefix+from, s.prefix+to) },
	)
}

// DeletePayloads implements provider.PayloadStore.
func (s *Store) DeletePayloads(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = s.prefix + key
	}
	return s.call(ctx, "S3.DeleteObjects", keys[0], func() error { return s.bucket.DeleteObjects(ctx, s.name, all) })
}

// ListPayloads implements provider.PayloadStore.
func (s *Store) ListPayloads(ctx context.Context, prefix, after string) (found []provider.StoredPayload, err error) {
	if after != "" {
		after = s.prefix + after
	}
	err = s.call(ctx, "S3.ListObjectsV2", prefix, func() error {
		found, err = s.bucket.ListObjects(ctx, s.name, s.prefix+prefix, after)
		return err
	})
	for i := range found {
		found[i].Key = strings.TrimPrefix(found[i].Key, s.prefix)
	}
	return found, err
}

// call makes a call with the retries of calls to the table. It does not retry ErrNotFound.
func (s *Store) call(ctx context.Context, op, key string, f func() error) error {
	missing := false
	err := awscall.Do(ctx, op, "", func() error {
		err := f()
		missing = errors.Is(err, provider.ErrNotFound)
		return err
	})
	if missing {
		return fmt.Errorf("dynamo: payload %s: %w", key, provider.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("dynamo: payload %s: %w", key, err)
	}
	return nil
}

// Has reports whether an execution has payloads in the bucket.
func (s *Store) Has(ctx context.Context, executionID string) (bool, error) {
	if s == nil {
		return false, nil
	}
	found, err := s.ListPayloads(ctx, provider.PayloadPrefix(executionID), "")
	return len(found) > 0, err
}

// DeleteAll deletes the payloads of an execution page by page, and calls progress after each page. The start of the
// execution is already a stub, so no turn can commit a new reference to a payload. Sweep deletes payloads that late
// processes store afterwards.
func (s *Store) DeleteAll(ctx context.Context, executionID string, progress func(ctx context.Context) error) error {
	if s == nil {
		return nil
	}
	for {
		found, err := s.ListPayloads(ctx, provider.PayloadPrefix(executionID), "")
		if err != nil || len(found) == 0 {
			return err
		}
		keys := make([]string, len(found))
		for i := range found {
			keys[i] = found[i].Key
		}
		if err := s.DeletePayloads(ctx, keys...); err != nil {
			return err
		}
		if len(found) < provider.PayloadBatchSize {
			return nil
		}
		if err := progress(ctx); err != nil {
			return err
		}
	}
}

const (
	// minOrphanAge is the minimum age of a payload that can be an orphan. A process that stores a payload commits the
	// reference to it much earlier, or never.
	minOrphanAge = 48 * time.Hour
	// afterAllKeys sorts after every key of an execution.
	afterAllKeys = "~"
)

// ExecutionExists reports whether an execution exists.
type ExecutionExists func(ctx context.Context, executionID string) (bool, error)

// Sweep deletes a page of orphaned payloads after a position, and returns the position of the next page.
func (s *Store) Sweep(ctx context.Context, after string, exists ExecutionExists) (next string, deleted int, err error) {
	if s == nil {
		return "", 0, nil
	}
	found, err := s.ListPayloads(ctx, provider.ExecutionPayloadPrefix, after)
	if err != nil || len(found) == 0 {
		return "", 0, err
	}
	deleted, err = s.sweepPage(ctx, found, &after, exists)
	return after, deleted, err
}

// sweepPage checks the executions of a page of payloads, and advances the position past the checked ones.
func (s *Store) sweepPage(
	ctx context.Context, found []provider.StoredPayload, after *string, exists ExecutionExists,
) (deleted int, err error) {
	for len(found) > 0 {
		executionID := provider.ExecutionOfPayload(found[0].Key)
		n := slices.IndexFunc(found, func(f provider.StoredPayload) bool {
			return provider.ExecutionOfPayload(f.Key) != executionID
		})
		if n < 0 {
			n = len(found)
		}
		old := s.oldOf(found[:n])
		behind := found[n-1].Key
		found = found[n:]
		switch is, err := isOrphaned(ctx, executionID, old, exists); {
		case err != nil:
			return deleted, err
		case is:
			if err := s.DeletePayloads(ctx, old...); err != nil {
				return deleted, err
			}
			deleted += len(old)
		case executionID != "": // skip all other payloads of the execution, which are also kept
			behind = provider.PayloadPrefix(executionID) + afterAllKeys
		}
		*after = behind
	}
	return deleted, nil
}

// oldOf returns the keys of payloads that are old enough to be orphans.
func (s *Store) oldOf(found []provider.StoredPayload) (keys []string) {
	for i := range found {
		if found[i].StoredAt.Before(s.now().Add(-minOrphanAge)) {
			keys = append(keys, found[i].Key)
		}
	}
	return keys
}

// isOrphaned reports whether the execution of old payloads does not exist.
func isOrphaned(ctx context.Context, executionID string, old []string, exists ExecutionExists) (bool, error) {
	if executionID == "" || len(old) == 0 {
		return false, nil
	}
	there, err := exists(ctx, executionID)
	return err == nil && !there, err
}
