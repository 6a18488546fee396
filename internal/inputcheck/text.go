package inputcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/provider"
)

// Text returns a *provider.FieldError if s is not valid UTF-8, has fewer than shortest or more than longest bytes, or
// contains control characters.
func Text(field, s string, shortest, longest int) error {
	if problem := textProblem(s, shortest, longest); problem != "" {
		return &provider.FieldError{Field: field, Problem: problem}
	}
	return nil
}

// Tags returns a *provider.FieldError if there are more than provider.MaxTags tags, or if a key or value is not a valid
// text (see Text).
func Tags(tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	const field = "tags"
	if n := len(tags); n > provider.MaxTags {
		return &provider.FieldError{
			Field: field, Problem: fmt.Sprintf("must have at most %d entries, has %d", provider.MaxTags, n),
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if problem := textProblem(key, 1, provider.MaxTagKeyBytes); problem != "" {
			return &provider.FieldError{Field: field, Problem: "has a key that " + problem}
		}
		if problem := textProblem(tags[key], 0, provider.MaxTagValueBytes); problem != "" {
			return &provider.FieldError{
				Field: field, Problem: fmt.Sprintf("has a value for key %q that %s", key, problem),
			}
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
