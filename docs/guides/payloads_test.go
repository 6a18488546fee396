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

// scan is a page of a document, as large as its picture.
type scan struct {
	Page    int
	Picture []byte
}

func scanPage(_ context.Context, page int) (scan, error) {
	return scan{page, make([]byte, 2<<20)}, nil // 2.7 MiB as JSON
}

func readText(_ context.Context, s scan) (string, error) {
	return fmt.Sprintf("page %d, %d bytes", s.Page, len(s.Picture)), nil
}

func digitise(ctx *perdure.OrchestrationContext, pages int) ([]string, error) {
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

func archive() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "scan-page", scanPage)
	perdure.AddActivity(r, "read-text", readText)
	perdure.AddOrchestration(r, "digitise", digitise)
	return r
}

// digitised runs the orchestration, and returns its texts.
func digitised(t *testing.T, env *perduretest.Env) ([]string, error) {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "digitise", 2, client.WithInstanceID("deed-7"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return client.Result[[]string](status)
}

func TestPagesThatAreLargerThanAHistoryTakes(t *testing.T) {
	t.Parallel()
	got, err := digitised(t, perduretest.New(t, archive(), perduretest.WithLargePayloads()))
	if err != nil || strings.Join(got, "; ") != "page 0, 2097152 bytes; page 1, 2097152 bytes" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := digitised(t, perduretest.New(t, archive())); err == nil || !strings.Contains(err.Error(), "payload too large") {
		t.Errorf("without a bucket: %v", err)
	}
}

// paperKeys stand in for KMS.
type paperKeys struct{}

func (paperKeys) GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error) {
	key, err = paperKeys{}.UnwrapDataKey(ctx, []byte("one"))
	return key, []byte("one"), err
}

func (paperKeys) UnwrapDataKey(_ context.Context, wrapped []byte) ([]byte, error) {
	sum := sha256.Sum256(wrapped)
	return sum[:], nil
}

// sealed compresses, and then encrypts.
func sealed(keys codec.Keys) perdure.Codec {
	return codec.Chain("orders-2026", codec.Zstd(), codec.Envelope("orders-2026", keys))
}

func TestACodecOnBothSides(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, archive(), perduretest.WithCodec(sealed(paperKeys{})), perduretest.WithLargePayloads())
	if got, err := digitised(t, env); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	env.Advance(time.Minute)
}

// masked hides card numbers from history, which nobody is to read there: a codec of one's own.
type masked struct{}

func (masked) ID() string { return "rot" }

func (masked) Encode(_ context.Context, p perdure.PayloadInfo, doc []byte) ([]byte, error) {
	if p.Kind != history.PayloadActivityInput {
		return nil, nil // as it is
	}
	return turned(doc), nil
}

func (masked) Decode(_ context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	return turned(data), nil
}

func turned(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ 0x5a
	}
	return out
}

func TestACodecOfOnesOwn(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, archive(), perduretest.WithCodec(masked{}), perduretest.WithLargePayloads())
	if got, err := digitised(t, env); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
}
