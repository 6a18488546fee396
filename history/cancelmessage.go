package history

import (
	"fmt"
	"strings"
)

// MaxCancelMessageBytes bounds the message of a cancel: who cancels says why, and each activity that sees it is told.
const MaxCancelMessageBytes = 4 << 10

// CutCancelMessage is a message of a cancel within MaxCancelMessageBytes: one that is longer is cut between characters, and says how many bytes
// are missing. A message that was cut is left as it is.
func CutCancelMessage(s string) string { return CutMessage(s, MaxCancelMessageBytes) }

// CutMessage is CutCancelMessage within so many bytes; the mark that says so is always there.
func CutMessage(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "… (cut: %d bytes)"
	kept := strings.ToValidUTF8(s[:max(most-len(fmt.Sprintf(mark, len(s))), 0)], "")
	return kept + fmt.Sprintf(mark, len(s)-len(kept))
}
