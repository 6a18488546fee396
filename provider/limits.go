package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// CheckText returns a *FieldError if s is not valid UTF-8, has fewer than shortest or more than longest bytes, or
// contains control characters.
func CheckText(field, s string, shortest, longest int) error {
	if problem := textProblem(s, shortest, longest); problem != "" {
		return &FieldError{Field: field, Problem: problem}
	}
	return nil
}

// CheckTags returns a *FieldError if there are more than MaxTags tags, or if a key or value is not a valid text (see
// CheckText).
func CheckTags(tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	const field = "tags"
	if n := len(tags); n > MaxTags {
		return &FieldError{Field: field, Problem: fmt.Sprintf("must have at most %d entries, has %d", MaxTags, n)}
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if problem := textProblem(key, 1, MaxTagKeyBytes); problem != "" {
			return &FieldError{Field: field, Problem: "has a key that " + problem}
		}
		if problem := textProblem(tags[key], 0, MaxTagValueBytes); problem != "" {
			return &FieldError{Field: field, Problem: fmt.Sprintf("has a value for key %q that %s", key, problem)}
		}
	}
	return nil
}

func textProblem(s string, shortest, longest int) string {
	switch at := strings.IndexFunc(s, unicode.IsControl); {
	case len(s) < shortest || len(s) > longest:
		return LengthProblem(s, shortest, longest)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case at >= 0:
		return fmt.Sprintf("has a control character at byte %d", at)
	default:
		return ""
	}
}

// LengthProblem returns the Problem of a FieldError for a text of invalid length.
func LengthProblem(s string, shortest, longest int) string {
	return fmt.Sprintf("must be %d to %d bytes, is %d", shortest, longest, len(s))
}
