package history_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
)

func TestTruncateCancelMessage_longMessage_isCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "short", strings.Repeat("x", history.MaxCancelMessageBytes)} {
		if got := history.TruncateCancelMessage(s); got != s {
			t.Errorf("message of %d bytes: got %d bytes", len(s), len(got))
		}
	}
	for n := range 8 {
		s := strings.Repeat("x", n) + strings.Repeat("€", 5<<20/3)
		got := history.TruncateCancelMessage(s)
		text, mark, _ := strings.Cut(got, "…")
		if len(got) > history.MaxCancelMessageBytes || len(got) < history.MaxCancelMessageBytes-8 ||
			!utf8.ValidString(got) || !strings.HasPrefix(s, text) ||
			mark != fmt.Sprintf(" (cut: %d bytes)", len(s)-len(text)) {
			t.Errorf("got %d bytes with the end %q", len(got), got[len(got)-40:])
		}
		if again := history.TruncateCancelMessage(got); again != got {
			t.Error("a truncated message was truncated again")
		}
	}
	if got := history.TruncateMessage("a long one", 1); got != "… (cut: 10 bytes)" {
		t.Errorf("got %q", got)
	}
}
