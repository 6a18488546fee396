package history

import (
	"fmt"
	"strings"
)

// MaxCancelMessageBytes is the maximum size of a cancel message: 4 KiB.
const MaxCancelMessageBytes = 4 << 10

// TruncateCancelMessage truncates a cancel message to MaxCancelMessageBytes, between characters, and appends the number
// of removed bytes. It returns a message that was already truncated unchanged.
func TruncateCancelMessage(s string) string { return TruncateMessage(s, MaxCancelMessageBytes) }

// TruncateMessage truncates a message like TruncateCancelMessage, to at most most bytes. The appended mark is always
// complete, even if the mark alone is longer than most bytes.
func TruncateMessage(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "… (cut: %d bytes)"
	kept := strings.ToValidUTF8(s[:max(most-len(fmt.Sprintf(mark, len(s))), 0)], "")
	return kept + fmt.Sprintf(mark, len(s)-len(kept))
}
