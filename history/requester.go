package history

import (
	"strings"
	"unicode"
)

// MaxRequesterBytes bounds the name of a requester, in bytes: no ARN is longer.
const MaxRequesterBytes = 2048

// Requester returns the name of a caller as history has it: an ARN, or the name that a program has set for itself. The
// names that the engine uses for itself are not available to callers: they become RequestedByClient. Control characters
// and text that is not UTF-8 are removed; a name longer than MaxRequesterBytes is cut. An empty name, of a caller that
// is not known, stays empty.
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
