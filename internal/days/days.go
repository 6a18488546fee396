// Package days parses durations with days and weeks, which package time does not support.
package days

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Parse parses a duration like [time.ParseDuration], with optional weeks (w, 7 days) and days (d, 24 hours) in front:
// 30d, 2w, 1d12h. The duration must not be negative.
func Parse(s string) (time.Duration, error) {
	total, rest := time.Duration(0), s
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		head, tail, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil || n > uint64((1<<63-1)/unit.is) {
			return 0, wrong(s)
		}
		if total += time.Duration(n) * unit.is; total < 0 {
			return 0, wrong(s)
		}
		rest = tail
	}
	if rest == "" && s != "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || total+d < 0 || strings.HasPrefix(rest, "+") {
		return 0, wrong(s)
	}
	return total + d, nil
}

func wrong(s string) error {
	return fmt.Errorf("%q is not a duration; use a value such as 30d, 12h or 1d12h", s)
}
