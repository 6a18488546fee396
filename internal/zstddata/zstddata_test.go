package zstddata_test

import (
	"bytes"
	"errors"
	"runtime/metrics"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/internal/zstddata"
)

const limit = 32 << 20

// bomb declares limit bytes and contains one.
const bomb = "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x02\x0b\x00\x00x"

func encoder(tb testing.TB) *zstd.Encoder {
	tb.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestDecode_anySize_returnsTheDocument(t *testing.T) {
	t.Parallel()
	e, d := encoder(t), zstddata.NewDecoder(limit)
	for _, size := range []int{0, 1, 255, 256, 1024, 1025, 128 << 10, 5 << 20} {
		want := make([]byte, size)
		if got, err := d.Decode(e.EncodeAll(want, nil)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, error %v", size, len(got), err)
		}
	}
	if _, err := d.Decode(e.EncodeAll(make([]byte, limit+1), nil)); !errors.Is(err, zstddata.ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	total := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(total)
	before := total[0].Value.Uint64()
	f()
	metrics.Read(total)
	return total[0].Value.Uint64() - before
}

// FuzzDecode checks that data is rejected, or is a document of at most the limit, and that the memory for it does not
// depend on a declared size alone.
func FuzzDecode(f *testing.F) {
	e, d := encoder(f), zstddata.NewDecoder(limit)
	f.Add([]byte(bomb))
	f.Add(append(e.EncodeAll([]byte("x"), nil), bomb...))
	f.Add(append([]byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x"), bomb...)) // behind a frame that decoders skip
	for _, doc := range [][]byte{[]byte(`[{"id":1}]`), make([]byte, 300), make([]byte, 300<<10)} {
		f.Add(e.EncodeAll(doc, nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var doc []byte
		var err error
		const reserve = 8 << 20 // buffers of the decoder, which it reuses
		if n := allocated(func() { doc, err = d.Decode(data) }); n > reserve+256<<10*uint64(len(data)/3+1) {
			t.Errorf("%d bytes of memory for %q", n, data)
		}
		if err != nil && doc != nil || len(doc) > limit {
			t.Errorf("%q: %d bytes, error %v", data, len(doc), err)
		}
		if again, err := d.Decode(e.EncodeAll(doc, nil)); err != nil || !bytes.Equal(again, doc) {
			t.Errorf("%q: %d bytes, then %d, error %v", data, len(doc), len(again), err)
		}
	})
}
