package history

import (
	"strings"
	"unicode"
)

// MaxRequesterBytes is the maximum size of a requester's name, which is the maximum size of an ARN.
const MaxRequesterBytes = 2048

// Requester returns the name of a caller, an ARN or a custom name, in the form that histories store. Names that are
// reserved for the engine become RequestedByClient. Control characters and invalid UTF-8 are removed, and a name longer
// than MaxRequesterBytes is truncated. An empty name stays empty.
func Requester(name string) string {
	if name == RequestedByOrchestration || name == RequestedByEngine || strings.HasPrefix(name, RequestedByParent) {
		return RequestedByClient
	}
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return TruncateMessage(clean, MaxRequesterBytes)
}
