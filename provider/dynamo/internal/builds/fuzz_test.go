package builds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FuzzDecode checks that the item of a build is rejected with an error that names it, or is decoded.
func FuzzDecode(f *testing.F) {
	f.Add("b#7", `{"id":"7","orchestrations":{"order":["1.0"]}}`)
	f.Add("b#", "")
	f.Add("b#8", `{"id":8}`)
	f.Fuzz(func(t *testing.T, sk, doc string) {
		it := table.Item{table.AttrSK: table.Str(sk), table.AttrBuild: table.Str(doc)}
		b, err := decode(it)
		if err != nil && !strings.HasPrefix(err.Error(), "dynamo: build "+sk+": ") {
			t.Errorf("error without the build: %v", err)
		}
		if again, err2 := decode(it); (err == nil) != (err2 == nil) || !cmp.Equal(again, b) {
			t.Errorf("%q: %+v, then %+v", doc, b, again)
		}
	})
}
