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
	MaxTags            = 16 // a number
	MaxTagKeyBytes     = 64
	MaxTagValueBytes   = 256
)

// maxExcerptBytes is the maximum number of bytes of an unrecognized text in an error.
const maxExcerptBytes = 64

// Excerpt returns the part of a caller's text that an error repeats: at most 64 bytes of valid UTF-8.
func Excerpt[S ~string](s S) string {
	return history.TruncateMessage(strings.ToValidUTF8(string(s), "\uFFFD"), maxExcerptBytes)
}
