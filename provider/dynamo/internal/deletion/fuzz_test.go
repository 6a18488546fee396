package deletion

import (
	"maps"
	"testing"
)

// FuzzDecodeSearch checks that the stored position of a search is rejected, or is encoded and decoded unchanged. Its
// size must not depend on the length of a range in it.
func FuzzDecodeSearch(f *testing.F) {
	doc, err := encodeSearch(7, map[int64]bool{2: true, 3: true, 9: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add(`{"before":1,"settled":{"ids":[[1,9223372036854775807]]}}`)
	f.Add(`{"before":1,"settled":{"first":9223372036854775807,"bitmap":"/w=="}}`)
	f.Add(`{"before":"1"}`)
	f.Fuzz(func(t *testing.T, doc string) {
		at, settled, err := decodeSearch(doc)
		if err != nil {
			return
		}
		again, err := encodeSearch(at, settled)
		if err != nil {
			t.Fatal(err)
		}
		before, same, err := decodeSearch(again)
		if err != nil || before != at || !maps.Equal(same, settled) {
			t.Errorf("%s: before %d, %v, then %d, %v, error %v", doc, at, settled, before, same, err)
		}
	})
}
