package codec_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
)

// oneKey is a key service with one data key, so that all processes of a fuzz test decrypt the same data.
type oneKey struct{}

func (oneKey) GenerateDataKey(context.Context) (key, wrapped []byte, err error) {
	return bytes.Repeat([]byte("k"), 32), []byte("wrapped"), nil
}

func (k oneKey) UnwrapDataKey(ctx context.Context, wrapped []byte) ([]byte, error) {
	key, known, err := k.GenerateDataKey(ctx)
	if !bytes.Equal(wrapped, known) {
		return nil, perdure.NonRetryable(errors.New("unknown key"))
	}
	return key, err
}

// FuzzDecode checks each codec: it decodes what it has encoded, and rejects all other data with an error that is not
// retried. Envelope accepts only documents that it has encrypted.
func FuzzDecode(f *testing.F) {
	encrypting := codec.Envelope("orders", oneKey{})
	all := map[string]perdure.Codec{
		"zstd": codec.Zstd(), "envelope": encrypting, "chain": codec.Chain("both", codec.Zstd(), encrypting),
		"twice": codec.Chain("twice", codec.Zstd(), codec.Zstd()),
	}
	ctx := context.Background()
	docs := []string{`{"card":"4111"}`, `"` + strings.Repeat("so much of the same ", 100) + `"`}
	for _, c := range all {
		for _, doc := range docs {
			data, err := c.Encode(ctx, info, []byte(doc))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x02\x01\x00\x00")) // declares 32 MiB
	f.Add([]byte{1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, c := range all {
			doc, err := c.Decode(ctx, info, b)
			if err != nil && !isFinal(err) {
				t.Errorf("%s: %q is rejected, but retried: %v", name, b, err)
			}
			if err == nil && name == "envelope" && !slices.Contains(docs, string(doc)) {
				t.Errorf("%q was decrypted to %q", b, doc)
			}
			data, err := c.Encode(ctx, info, b)
			if err != nil {
				t.Fatal(err)
			}
			if data == nil { // left unchanged
				continue
			}
			if got, err := c.Decode(ctx, info, data); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%s: %q was decoded to %q, error %v", name, b, got, err)
			}
		}
	})
}
