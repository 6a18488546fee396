package segments

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FuzzDecodeRollup checks that an accepted rollup has segments without a gap, which result in the same rollup. docs are
// the documents before their compression, and packed is an item's attribute as it is.
func FuzzDecodeRollup(f *testing.F) {
	var run rollup
	for sequence := range int64(3) {
		run.Add(sequence+1, encoded(f, segmentOf(sequence+1, 10, true)))
	}
	it, _ := run.Encode("X")
	f.Add(table.GetString(it, table.AttrSK), run.last, run.docs, table.GetBytes(it, table.AttrZstd))
	f.Add("g#1", int64(1), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), []byte(nil))
	f.Add("g#", int64(-1), []byte(nil), []byte("\x28\xb5\x2f\xfd"))
	f.Add("g#1", int64(1), []byte("\x00\x00\x02[]"), []byte(nil)) // a segment without events
	f.Fuzz(func(t *testing.T, sk string, last int64, docs, packed []byte) {
		for _, attribute := range [][]byte{table.Compress(docs), packed} {
			segments, err := decodeRollup(table.Item{
				table.AttrSK: table.Str(sk), attrLast: table.Num(last), table.AttrZstd: table.Bin(attribute),
			})
			if err != nil {
				continue
			}
			var again rollup
			for i := range segments {
				if len(segments[i].Events) == 0 {
					t.Fatalf("segment %d has no events", segments[i].Sequence)
				}
				again.Add(segments[i].Sequence, encoded(t, segments[i]))
			}
			if len(segments) == 0 || again.last != last || again.Length() != int64(len(segments)) {
				t.Fatalf("%s to %d: %d segments, again %d to %d", sk, last, len(segments), again.first, again.last)
			}
			it, _ := again.Encode("X")
			if same, err := decodeRollup(it); err != nil || !cmp.Equal(same, segments) {
				t.Errorf("%s to %d: %s, error %v", sk, last, cmp.Diff(segments, same), err)
			}
		}
	})
}
