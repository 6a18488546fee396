package app

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
)

// EncryptedPrefix is the prefix of the IDs of instances whose payloads the functions encrypt.
const EncryptedPrefix = "encrypted-"

// Codec returns a codec that encrypts only the payloads of instances with EncryptedPrefix.
func Codec() perdure.Codec { return selectiveCodec{codec.Envelope("e2e", fixedKeys{})} }

type selectiveCodec struct{ perdure.Codec }

// Encode implements perdure.Codec.
func (c selectiveCodec) Encode(ctx context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if !strings.HasPrefix(p.InstanceID, EncryptedPrefix) {
		return nil, nil
	}
	return c.Codec.Encode(ctx, p, doc)
}

// fixedKeys derives a data key from its wrapped form: the key is the SHA-256 digest of the wrapped key.
type fixedKeys struct{}

// GenerateDataKey implements codec.KeyProvider.
func (fixedKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	wrapped = []byte("key one")
	key, err = fixedKeys{}.UnwrapDataKey(ctx, wrapped)
	return key, wrapped, err
}

// UnwrapDataKey implements codec.KeyProvider.
func (fixedKeys) UnwrapDataKey(_ context.Context, wrapped []byte) (key []byte, err error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}
