package lists

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/provider"
)

// FuzzParseCursor checks that a cursor is rejected with a FieldError, or belongs to the query and is encoded and parsed
// unchanged. doc is the document of a cursor before its encoding.
func FuzzParseCursor(f *testing.F) {
	q := provider.ListQuery{Status: provider.StatusBlocked}
	good := cursor{Before: "2026-07-01T00:00:00.000Z", Key: "i#a", Partition: 1, Query: queryDigest(q)}
	for _, c := range []string{
		good.String(), cursor{Before: "x", Query: "other"}.String(), "e30=", "e30\n", matchCursor(3, "x"), "16 ", "-1 x",
	} {
		f.Add(c, "{}")
	}
	f.Add("", `{"b":"2026-07-01T00:00:00.000Z#1","q":"`+queryDigest(q)+`"}`)
	f.Add("", `{"b":"\u0000","k":"i#","p":99,"q":"`+queryDigest(q)+`"}`)
	f.Fuzz(func(t *testing.T, text, doc string) {
		for _, q.Cursor = range []string{text, base64.RawURLEncoding.EncodeToString([]byte(doc))} {
			c, err := parseCursor(q)
			if err != nil {
				wantField(t, err, fieldCursor)
				continue
			}
			again := q
			again.Cursor = c.String()
			if same, err := parseCursor(again); q.Cursor != "" && (err != nil || same != c || c.Query != good.Query) {
				t.Errorf("%q is %+v, then %+v, error %v", q.Cursor, c, same, err)
			}
		}
		shard, after, err := parseMatchCursor(text)
		if err != nil {
			wantField(t, err, "from")
			return
		}
		s, a, err := parseMatchCursor(matchCursor(shard, after))
		if err != nil || s != shard || a != after || !strings.HasSuffix(text, after) {
			t.Errorf("%q is shard %d after %q, then %d after %q, error %v", text, shard, after, s, a, err)
		}
	})
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != field {
		t.Errorf("error without the field %s: %v", field, err)
	}
}
