package sqsqueue

import (
	"strings"
	"testing"
)

// SQS accepts 128 characters of ASCII as a group ID or deduplication ID.
func TestGroupID_anyInstanceID_isValidInSQSAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{
		"", "a", "A", "日本語", "\uFFFF", "a b", strings.Repeat("x", 1024), strings.Repeat("x", 1023),
	} {
		g := GroupID(id)
		if len(g) > 128 || strings.Trim(g, "0123456789abcdef") != "" {
			t.Errorf("group of %q is %q", id, g)
		}
		if other, accepted := seen[g]; accepted {
			t.Errorf("%q and %q share a group", id, other)
		}
		seen[g] = id
	}
}

// Group IDs must not change between releases, because functions of two releases may run at the same time.
func TestGroupID_isTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	if got, want := GroupID("order-1"), "2b78bde4aa2bf21ace53a4583691f4466927aa18"; got != want {
		t.Errorf("group %s, want %s", got, want)
	}
}
