package table

import (
	"bytes"
	"testing"
)

// FuzzDecompress checks that a compressed document is decompressed unchanged, and that other data is rejected without
// memory for a size that it only declares.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(Compress([]byte(`[{"id":1,"kind":"TurnStarted","time":"2026-01-01T00:00:00Z"}]`)))
	f.Add(Compress(make([]byte, 300<<10)))
	f.Add([]byte("\x28\xb5\x2f\xfd\xa0\xff\xff\xff\x0f\x01\x00\x00")) // declares 256 MiB
	f.Fuzz(func(t *testing.T, b []byte) {
		if doc, err := Decompress(Compress(b)); err != nil || !bytes.Equal(doc, b) {
			t.Errorf("%q was decompressed as %q, error %v", b, doc, err)
		}
		if doc, err := Decompress(b); err == nil {
			if again, err := Decompress(Compress(doc)); err != nil || !bytes.Equal(again, doc) {
				t.Errorf("%d bytes, then %d, error %v", len(doc), len(again), err)
			}
		}
	})
}

// FuzzParseSegmentSK checks that a sort key is rejected or belongs to the parsed segment and part.
func FuzzParseSegmentSK(f *testing.F) {
	for _, sk := range []string{SegmentSK(0, 0), SegmentSK(7, 3), SegmentSK(MaxSequence, 999), "h#", "h#1#", "i", "-1", "h#1#-1"} {
		f.Add(sk)
	}
	f.Fuzz(func(t *testing.T, sk string) {
		sequence, part, err := ParseSegmentSK(sk)
		if err != nil {
			return
		}
		if s, p, err := ParseSegmentSK(SegmentSK(sequence, part)); err != nil || s != sequence || p != part {
			t.Errorf("%q is segment %d, part %d, then %d, %d, error %v", sk, sequence, part, s, p, err)
		}
	})
}
