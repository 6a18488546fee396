package failures_test

import (
	"testing"

	"github.com/perdure/perdure/internal/failures"
)

// FuzzParseTooLarge checks that the message of a too large payload is parsed unchanged, and that any other message does
// not panic.
func FuzzParseTooLarge(f *testing.F) {
	f.Add("input of activity \"resize\"", 300_000, 262_144)
	f.Add("payload too large: 5 bytes, limit 6:", -1, 0)
	f.Add(failures.TooLargeMessage("result: of: all", 1, 2)[:20], 1, 2)
	f.Fuzz(func(t *testing.T, name string, bytes, limit int) {
		message := failures.TooLargeMessage(name, bytes, limit)
		if n, b, l := failures.ParseTooLarge("activity failed: " + message); n != name || b != bytes || l != limit {
			t.Errorf("%q was parsed as %q, %d, %d", message, n, b, l)
		}
		if n, _, _ := failures.ParseTooLarge(name); len(n) > len(name) {
			t.Errorf("%q was parsed as %q", name, n)
		}
	})
}
