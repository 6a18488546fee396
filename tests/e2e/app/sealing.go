package app

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
)

// SealedPrefix begins the ids of the instances whose payloads the functions encrypt.
const SealedPrefix = "sealed-"

// Codec encrypts the payloads of those instances, and leaves all others as they are.
func Codec() perdure.Codec { return choosy{codec.Envelope("e2e", paperKeys{})} }

type choosy struct{ perdure.Codec }

// Encode implements perdure.Codec.
func (c choosy) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if !strings.HasPrefix(p.InstanceID, SealedPrefix) {
		return nil, nil
	}
	return c.Codec.Encode(ctx, p, doc)
}

// paperKeys wraps data keys by naming them: a key is the digest of its name.
type paperKeys struct{}

// GenerateDataKey implements codec.KeyProvider.
func (paperKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	wrapped = []byte("key one")
	key, err = paperKeys{}.UnwrapDataKey(ctx, wrapped)
	return key, wrapped, err
}

// UnwrapDataKey implements codec.KeyProvider.
func (paperKeys) UnwrapDataKey(_ context.Context, wrapped []byte) (key []byte, err error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}
