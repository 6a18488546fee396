package app

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
)

// SealedPrefix is the prefix of the IDs of instances whose payloads the functions encrypt.
const SealedPrefix = "sealed-"

// Codec returns a codec that encrypts only the payloads of instances with SealedPrefix.
func Codec() perdure.Codec { return choosy{codec.Envelope("e2e", paperKeys{})} }

type choosy struct{ perdure.Codec }

// Encode implements perdure.Codec.
func (c choosy) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if !strings.HasPrefix(p.InstanceID, SealedPrefix) {
		return nil, nil
	}
	return c.Codec.Encode(ctx, p, doc)
}

// paperKeys derives a data key from its wrapped form: the key is the SHA-256 digest of the wrapped key.
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
