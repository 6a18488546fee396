package engine_test

import (
	"context"
	"crypto/sha256"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/tests/scenarios"
)

// fixedKeys derives a data key from its wrapped form: the key is the SHA-256 digest of the wrapped key.
type fixedKeys struct{}

func (fixedKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	wrapped = []byte("key one")
	key, err = fixedKeys{}.UnwrapDataKey(ctx, wrapped)
	return key, wrapped, err
}

func (fixedKeys) UnwrapDataKey(_ context.Context, wrapped []byte) (key []byte, err error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}

// encrypting returns a codec that encrypts all payloads, with a different ciphertext each time.
func encrypting() perdure.Codec { return codec.Envelope("test", fixedKeys{}) }

// Each scenario runs with a codec that encrypts all payloads, with cached executions and with a full replay in each
// turn.
func TestEngine_scenariosWithEncryption_succeed(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios.All(tick) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for name, opts := range map[string][]perduretest.Option{"warm": {perduretest.WithCache()}, "cold": nil} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					inVirtualTime(t, named(t, s.Name), append(opts, perduretest.WithCodec(encrypting()))...)
				})
			}
		})
	}
}
