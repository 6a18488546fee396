package history

import (
	"strings"
	"unicode"
)

// MaxRequesterBytes bounds who asked for something, in bytes: no ARN is longer.
const MaxRequesterBytes = 2048

// Requester is the name of a caller as history has it: an ARN, or whatever a program calls itself. What the engine says of itself nobody can
// be called: that is RequestedByClient. Text that is not UTF-8, or has control characters, is without those; a longer one than MaxRequesterBytes is cut.
// Empty stays empty: nobody knows.
func Requester(name string) string {
	if name == RequestedByBody || name == RequestedByEngine || strings.HasPrefix(name, RequestedByParent) {
		return RequestedByClient
	}
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return CutMessage(clean, MaxRequesterBytes)
}
