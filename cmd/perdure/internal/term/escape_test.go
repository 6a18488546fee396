package term

import (
	"strings"
	"testing"
)

func TestEscapeRune_controlAndFormatCharacters_areVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ä 漢\n\tx":  "plain ä 漢\n\tx",
		"\x1b[2J\r\x7f":   `\u001b[2J\u000d\u007f`,
		"a\u202eb\u2066":  `a\u202eb\u2066`,
		"\u200b\ufeff":    `\u200b\ufeff`,
		"\U000e0041":      `\U000e0041`,
		"\u2028":          `\u2028`,
		"invalid \xff it": "invalid \ufffd it",
	} {
		var b strings.Builder
		for _, r := range text {
			b.WriteString(EscapeRune(r))
		}
		if got := b.String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
