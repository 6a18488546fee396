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

// paperKeys wraps data keys by naming them: a key is the digest of its name.
type paperKeys struct{}

func (paperKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	wrapped = []byte("key one")
	key, err = paperKeys{}.UnwrapDataKey(ctx, wrapped)
	return key, wrapped, err
}

func (paperKeys) UnwrapDataKey(_ context.Context, wrapped []byte) (key []byte, err error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}

// sealing encrypts everything, and the same never to the same twice.
func sealing() perdure.Codec { return codec.Envelope("test", paperKeys{}) }

// TestEngineSealed runs each scenario with a codec that encodes everything, and nothing to the same twice: warm, and
// with each turn replaying the history from its beginning.
func TestEngineSealed(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios.All(tick) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for name, opts := range map[string][]perduretest.Option{"warm": {perduretest.WithCache()}, "cold": nil} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					inVirtualTime(t, named(t, s.Name), append(opts, perduretest.WithCodec(sealing()))...)
				})
			}
		})
	}
}
