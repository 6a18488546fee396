package days_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/days"
)

func TestParse_returnsDurationOrError(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1w1d": 8 * 24 * time.Hour,
		"90s": 90 * time.Second, "0s": 0, "0d": 0,
		"2592000s": 30 * 24 * time.Hour,
	} {
		if got, err := days.Parse(in); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "d", "30", "-3d", "3d-1h", "-1h", "+1d", "1.5d", "1d1w", "1dd", "99999999999d", "200000d", "106751d48h",
		"30 d", "thirty",
	} {
		if got, err := days.Parse(in); err == nil {
			t.Errorf("%q is parsed as %v", in, got)
		}
	}
}
