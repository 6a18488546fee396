package inside

import (
	"context"

	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// Payloads returns the hub's payload store, whose calls run in the bubble.
func (b *completions) Payloads() provider.PayloadStore {
	store := payloads.StoreOf(b.Provider)
	if store == nil {
		return nil
	}
	return &payloadStore{store, b}
}

// SweepPayloads implements provider.PayloadStoreProvider.
func (b *completions) SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error) {
	k, ok := unwrap.As[provider.PayloadStoreProvider](b.Provider)
	if !ok {
		return "", 0, nil
	}
	b.run(ctx, func(ctx context.Context) { next, deleted, err = k.SweepPayloads(ctx, after) })
	return next, deleted, err
}

// payloadStore runs the calls of a payload store in the bubble.
type payloadStore struct {
	provider.PayloadStore

	hub *completions
}

func (b *payloadStore) PutPayload(ctx context.Context, key string, data []byte) (err error) {
	b.hub.run(ctx, func(ctx context.Context) { err = b.PayloadStore.PutPayload(ctx, key, data) })
	return err
}

func (b *payloadStore) GetPayload(ctx context.Context, key string) (data []byte, err error) {
	b.hub.run(ctx, func(ctx context.Context) { data, err = b.PayloadStore.GetPayload(ctx, key) })
	return data, err
}

func (b *payloadStore) CopyPayload(ctx context.Context, from, to string) (err error) {
	b.hub.run(ctx, func(ctx context.Context) { err = b.PayloadStore.CopyPayload(ctx, from, to) })
	return err
}

func (b *payloadStore) DeletePayloads(ctx context.Context, keys ...string) (err error) {
	b.hub.run(ctx, func(ctx context.Context) { err = b.PayloadStore.DeletePayloads(ctx, keys...) })
	return err
}

func (b *payloadStore) ListPayloads(
	ctx context.Context, prefix, after string,
) (found []provider.StoredPayload, err error) {
	b.hub.run(ctx, func(ctx context.Context) { found, err = b.PayloadStore.ListPayloads(ctx, prefix, after) })
	return found, err
}
