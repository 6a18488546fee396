package verification

import (
	"strings"
	"testing"
)

// FuzzParseAllowance checks that an allowance is rejected with an error that contains it, or tolerates no failures at
// all only if it says so.
func FuzzParseAllowance(f *testing.F) {
	for _, text := range []string{"1%", "0", "100%", "101%", "NaN%", "-0%", "1e400%", "-1", "5", "0x1p-2%", "", "%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAllowance(text)
		if err != nil {
			if !strings.Contains(err.Error(), "must be a number or a percentage") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if a.number < 0 || !(a.share >= 0 && a.share <= 100) || a.allows(7, 7) || !a.allows(0, 7) {
			t.Errorf("%q is %+v", text, a)
		}
	})
}
