package perduretest

import (
	"context"

	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// Payloads returns the hub's payload store, whose calls run in the bubble.
func (b *holders) Payloads() provider.PayloadStore {
	store := vault.StoreOf(b.Provider)
	if store == nil {
		return nil
	}
	return &bubblePayloads{store, b}
}

// SweepPayloads implements provider.PayloadStoreProvider.
func (b *holders) SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error) {
	k, ok := b.Provider.(provider.PayloadStoreProvider)
	if !ok {
		return "", 0, nil
	}
	ctx = b.within(ctx)
	b.env.do(func() { next, deleted, err = k.SweepPayloads(ctx, after) })
	return next, deleted, err
}

// bubblePayloads makes the calls of a store in the bubble.
type bubblePayloads struct {
	provider.PayloadStore

	hub *holders
}

func (b *bubblePayloads) PutPayload(ctx context.Context, key string, data []byte) (err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { err = b.PayloadStore.PutPayload(ctx, key, data) })
	return err
}

func (b *bubblePayloads) GetPayload(ctx context.Context, key string) (data []byte, err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { data, err = b.PayloadStore.GetPayload(ctx, key) })
	return data, err
}

func (b *bubblePayloads) CopyPayload(ctx context.Context, from, to string) (err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { err = b.PayloadStore.CopyPayload(ctx, from, to) })
	return err
}

func (b *bubblePayloads) DeletePayloads(ctx context.Context, keys ...string) (err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { err = b.PayloadStore.DeletePayloads(ctx, keys...) })
	return err
}

func (b *bubblePayloads) ListPayloads(ctx context.Context, prefix, after string) (found []provider.StoredPayload, err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { found, err = b.PayloadStore.ListPayloads(ctx, prefix, after) })
	return found, err
}
