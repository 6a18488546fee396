package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// payloads implements provider.PayloadStore in the hub's bucket. The hub's name is the prefix of the keys, so that hubs
// can share a bucket.
type payloads struct {
	bucket BucketAPI
	name   string
	prefix string
}

// Payloads implements provider.PayloadStoreProvider.
func (p *Provider) Payloads() provider.PayloadStore {
	if p.payloads == nil {
		return nil
	}
	return p.payloads
}

// newPayloads returns the payload store of a hub, or nil if the hub has no bucket.
func newPayloads(h *HubConfig, b BucketAPI) *payloads {
	if h.PayloadBucket == "" || b == nil {
		return nil
	}
	return &payloads{bucket: b, name: h.PayloadBucket, prefix: h.Name + "/"}
}

// PutPayload implements provider.PayloadStore.
func (s *payloads) PutPayload(ctx context.Context, key string, data []byte) error {
	return s.call(ctx, "S3.PutObject", key, func() error { return s.bucket.PutObject(ctx, s.name, s.prefix+key, data) })
}

// GetPayload implements provider.PayloadStore.
func (s *payloads) GetPayload(ctx context.Context, key string) (data []byte, err error) {
	err = s.call(ctx, "S3.GetObject", key, func() error {
		data, err = s.bucket.GetObject(ctx, s.name, s.prefix+key, provider.MaxStoredPayloadBytes)
		return err
	})
	return data, err
}

// CopyPayload implements provider.PayloadStore.
func (s *payloads) CopyPayload(ctx context.Context, from, to string) error {
	return s.call(ctx, "S3.CopyObject", from, func() error { return s.bucket.CopyObject(ctx, s.name, s.prefix+from, s.prefix+to) })
}

// DeletePayloads implements provider.PayloadStore.
func (s *payloads) DeletePayloads(ctx context.Context, keys ...string) error {
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
func (s *payloads) ListPayloads(ctx context.Context, prefix, after string) (found []provider.StoredPayload, err error) {
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

// call makes a call like those to the table. ErrNotFound is not repeated.
func (s *payloads) call(ctx context.Context, op, key string, f func() error) error {
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

// hasPayloads reports whether an execution has payloads in the bucket.
func (p *Provider) hasPayloads(ctx context.Context, executionID string) (bool, error) {
	if p.payloads == nil {
		return false, nil
	}
	found, err := p.payloads.ListPayloads(ctx, provider.PayloadPrefix(executionID), "")
	return len(found) > 0, err
}

// erasePayloads deletes the payloads of an execution page by page. The start of the execution is already a stub, so
// that no turn can commit a reference to a payload any more. A sweep finds payloads that late processes store
// afterwards.
func (p *Provider) erasePayloads(ctx context.Context, executionID string, progress *progress) error {
	if p.payloads == nil {
		return nil
	}
	for {
		found, err := p.payloads.ListPayloads(ctx, provider.PayloadPrefix(executionID), "")
		if err != nil || len(found) == 0 {
			return err
		}
		keys := make([]string, len(found))
		for i := range found {
			keys[i] = found[i].Key
		}
		if err := p.payloads.DeletePayloads(ctx, keys...); err != nil {
			return err
		}
		if len(found) < provider.PayloadBatchSize {
			return nil
		}
		if err := progress.goesOn(ctx); err != nil {
			return err
		}
	}
}

const (
	// orphanAge is the minimum age of a payload that can be an orphan. A process that stores a payload commits the
	// reference to it much earlier, or never.
	orphanAge = 48 * time.Hour
	// behindAll sorts after every key of an execution.
	behindAll = "~"
)

// SweepPayloads implements provider.PayloadStoreProvider.
func (p *Provider) SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error) {
	if p.payloads == nil {
		return "", 0, nil
	}
	found, err := p.payloads.ListPayloads(ctx, provider.ExecutionPayloadPrefix, after)
	if err != nil || len(found) == 0 {
		return "", 0, err
	}
	deleted, err = p.sweepPage(ctx, found, &after)
	return after, deleted, err
}

// sweepPage checks the executions of a page of payloads, and advances the position past those that it has checked.
func (p *Provider) sweepPage(ctx context.Context, found []provider.StoredPayload, after *string) (deleted int, err error) {
	for len(found) > 0 {
		executionID := provider.ExecutionOfPayload(found[0].Key)
		n := slices.IndexFunc(found, func(s provider.StoredPayload) bool { return provider.ExecutionOfPayload(s.Key) != executionID })
		if n < 0 {
			n = len(found)
		}
		old := p.oldOf(found[:n])
		behind := found[n-1].Key
		found = found[n:]
		switch is, err := p.isOrphaned(ctx, executionID, old); {
		case err != nil:
			return deleted, err
		case is:
			if err := p.payloads.DeletePayloads(ctx, old...); err != nil {
				return deleted, err
			}
			deleted += len(old)
		case executionID != "": // the execution can have thousands more, which are kept too
			behind = provider.PayloadPrefix(executionID) + behindAll
		}
		*after = behind
	}
	return deleted, nil
}

// oldOf returns the keys of payloads that are old enough to be orphans.
func (p *Provider) oldOf(found []provider.StoredPayload) (keys []string) {
	for i := range found {
		if found[i].StoredAt.Before(p.now().Add(-orphanAge)) {
			keys = append(keys, found[i].Key)
		}
	}
	return keys
}

// isOrphaned reports whether the execution of old payloads does not exist.
func (p *Provider) isOrphaned(ctx context.Context, executionID string, old []string) (bool, error) {
	if executionID == "" || len(old) == 0 {
		return false, nil
	}
	start, err := p.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	return err == nil && (len(start) == 0 || table.IsStub(start)), err
}
