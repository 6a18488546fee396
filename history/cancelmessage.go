package history

import (
	"fmt"
	"strings"
)

// MaxCancelMessageBytes bounds the message of a cancel, which is passed to each cancelled activity.
const MaxCancelMessageBytes = 4 << 10

// CutCancelMessage cuts a message of a cancel to MaxCancelMessageBytes, between characters, and appends how many bytes
// are missing. It leaves a message that was cut before as it is.
func CutCancelMessage(s string) string { return CutMessage(s, MaxCancelMessageBytes) }

// CutMessage is CutCancelMessage with a limit of its own; the mark of a cut is always whole.
func CutMessage(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "… (cut: %d bytes)"
	kept := strings.ToValidUTF8(s[:max(most-len(fmt.Sprintf(mark, len(s))), 0)], "")
	return kept + fmt.Sprintf(mark, len(s)-len(kept))
}
