package provider

import (
	"strings"

	"github.com/perdure/perdure/history"
)

// The limits of IDs, names, tags and messages, in bytes unless noted.
const (
	MaxInstanceIDBytes = 1024
	MaxEventNameBytes  = 256
	MaxEventIDBytes    = 256
	MaxTags            = 16 // number of tags
	MaxTagKeyBytes     = 64
	MaxTagValueBytes   = 256
)

// maxExcerptBytes is the maximum length of an Excerpt.
const maxExcerptBytes = 64

// Excerpt returns the beginning of a caller's text for an error message, at most 64 bytes of valid UTF-8.
func Excerpt[S ~string](s S) string {
	return history.TruncateMessage(strings.ToValidUTF8(string(s), "\uFFFD"), maxExcerptBytes)
}
