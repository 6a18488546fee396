package days_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/days"
)

// FuzzParse checks that a text is rejected with an error that contains it, or is a duration whose text is parsed to the
// same duration.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"30d", "2w", "1d12h", "2w1d", "", "d", "15250w1d", "99999999999d", "1h-1ns", "+1h", "1.5h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := days.Parse(s)
		if err != nil {
			if !strings.Contains(err.Error(), "is not a duration") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if again, err := days.Parse(d.String()); d < 0 || err != nil || again != d {
			t.Errorf("%q is %v, then %v, error %v", s, d, again, err)
		}
	})
}
