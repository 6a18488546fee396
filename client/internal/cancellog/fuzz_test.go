package cancellog

import (
	"errors"
	"strconv"
	"testing"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// FuzzParseIndex checks that a cursor is rejected with a FieldError, or is the canonical text of a position.
func FuzzParseIndex(f *testing.F) {
	for _, cursor := range []string{"", "1", "100", "0", "-1", "+1", "01", "٣", "9223372036854775808"} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		n, err := parseIndex(cursor)
		if e, ok := errors.AsType[*provider.FieldError](err); err != nil && (!ok || e.Field != inputcheck.FieldCursor) {
			t.Errorf("%q: error without the field: %v", cursor, err)
		}
		if err == nil && cursor != "" && (n < 1 || strconv.Itoa(n) != cursor) {
			t.Errorf("%q is %d", cursor, n)
		}
	})
}
