package guides_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/codec"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// Scan is a scanned page.
type Scan struct {
	Page  int
	Image []byte
}

func scanPage(_ context.Context, page int) (Scan, error) {
	return Scan{page, make([]byte, 2<<20)}, nil // 2.7 MiB as JSON
}

func readText(_ context.Context, s Scan) (string, error) {
	return fmt.Sprintf("page %d, %d bytes", s.Page, len(s.Image)), nil
}

func digitize(ctx *perdure.OrchestrationContext, pages int) ([]string, error) {
	var texts []string
	for page := range pages {
		s, err := perdure.CallActivity(ctx, scanPage, page).Await(ctx)
		if err != nil {
			return nil, err
		}
		text, err := perdure.CallActivity(ctx, readText, s).Await(ctx)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func documentRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "scan-page", scanPage)
	perdure.AddActivity(r, "read-text", readText)
	perdure.AddOrchestration(r, "digitize", digitize)
	return r
}

// runDigitize runs the orchestration and returns its result.
func runDigitize(t *testing.T, env *perduretest.Env) ([]string, error) {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "digitize", 2, client.WithInstanceID("document-7"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return client.Result[[]string](status)
}

func TestLargePayloads_withAndWithoutStore_passOrFail(t *testing.T) {
	t.Parallel()
	got, err := runDigitize(t, perduretest.New(t, documentRegistry(), perduretest.WithLargePayloads()))
	if err != nil || strings.Join(got, "; ") != "page 0, 2097152 bytes; page 1, 2097152 bytes" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = runDigitize(t, perduretest.New(t, documentRegistry()))
	if err == nil || !strings.Contains(err.Error(), "payload too large") {
		t.Errorf("without a payload store: %v", err)
	}
}

// fakeKeys replaces KMS.
type fakeKeys struct{}

func (fakeKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	key, err = fakeKeys{}.UnwrapDataKey(ctx, []byte("key-1"))
	return key, []byte("key-1"), err
}

func (fakeKeys) UnwrapDataKey(_ context.Context, wrapped []byte) ([]byte, error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}

// newCodec compresses payloads, then encrypts them.
func newCodec(keys codec.KeyProvider) perdure.Codec {
	return codec.Chain("orders-2026", codec.Zstd(), codec.Envelope("orders-2026", keys))
}

func TestCodec_compressAndEncrypt_roundTrips(t *testing.T) {
	t.Parallel()
	codec := perduretest.WithCodec(newCodec(fakeKeys{}))
	env := perduretest.New(t, documentRegistry(), codec, perduretest.WithLargePayloads())
	if got, err := runDigitize(t, env); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	env.Advance(time.Minute)
}

// maskingCodec is an example of a custom codec. It obscures the inputs of activities.
type maskingCodec struct{}

func (maskingCodec) ID() string { return "mask-1" }

func (maskingCodec) Encode(_ context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if p.Kind != history.PayloadActivityInput {
		return nil, nil // store the payload unencoded
	}
	return flipBits(doc), nil
}

func (maskingCodec) Decode(_ context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	return flipBits(data), nil
}

func flipBits(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ 0x5a
	}
	return out
}

func TestCodec_customCodec_roundTrips(t *testing.T) {
	t.Parallel()
	codec := perduretest.WithCodec(maskingCodec{})
	env := perduretest.New(t, documentRegistry(), codec, perduretest.WithLargePayloads())
	if got, err := runDigitize(t, env); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
}
