package memhub

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/provider"
)

// FuzzParseCursor checks that a cursor is rejected with a FieldError, or has a position of a list with the filter.
func FuzzParseCursor(f *testing.F) {
	const filter = `Running,"a",,`
	encode := base64.RawURLEncoding.EncodeToString
	for _, text := range []string{
		strconv.Quote(filter) + " 1767355200000000000 order-7", strconv.Quote(filter) + " x a",
		strconv.Quote("other") + " 1 a", `"`, "",
	} {
		f.Add(encode([]byte(text)))
	}
	f.Add("e30\n")
	f.Fuzz(func(t *testing.T, cursor string) {
		at, id, err := parseCursor(cursor, filter)
		if err != nil {
			if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != fieldCursor {
				t.Errorf("%q: error without the field: %v", cursor, err)
			}
			return
		}
		again := encode([]byte(strconv.Quote(filter) + " " + strconv.FormatInt(at.UnixNano(), 10) + " " + id))
		if t2, id2, err := parseCursor(again, filter); err != nil || !t2.Equal(at) || id2 != id || id == "" ||
			strings.ContainsAny(cursor, "\r\n") {
			t.Errorf("%q is %v %q, then %v %q, error %v", cursor, at, id, t2, id2, err)
		}
	})
}
