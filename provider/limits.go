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
	MaxInstanceIDBytes  = 1024
	MaxEventNameBytes   = 256
	MaxEventIDBytes     = 256
	MaxTags             = 16 // a number
	MaxTagKeyBytes      = 64
	MaxTagValueBytes    = 256
	maxStartIDBytes     = 1024
	maxExecutionIDBytes = 256
	maxReasonBytes      = 256
	// maxNameBytes is the maximum size of the name and the version of an orchestration that code starts. Code may use
	// any name that fits an item of the store.
	maxNameBytes = 16 << 10
)

// fieldName is the name of a field in several errors.
const fieldName = "name"

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

// check checks the limits of a message that clients and code must observe.
func (m *Message) check() error {
	if err := CheckText("instanceId", m.InstanceID, 1, MaxInstanceIDBytes); err != nil {
		return err
	}
	for _, f := range []struct {
		field, text string
		longest     int
	}{
		{"executionId", m.ExecutionID, maxExecutionIDBytes},
		{"startId", m.StartID, maxStartIDBytes},
		{"eventId", m.EventID, MaxEventIDBytes},
		{"reason", m.Reason, maxReasonBytes},
		{"version", m.Version, maxNameBytes},
		{fieldName, m.Name, maxNameBytes},
	} {
		if len(f.text) > f.longest {
			return &FieldError{Field: f.field, Problem: LengthProblem(f.text, 0, f.longest)}
		}
	}
	if !m.Kind.carriesEvent() {
		return CheckTags(m.Tags)
	}
	if err := CheckText(fieldName, m.Name, 1, MaxEventNameBytes); err != nil {
		return err
	}
	return CheckText("eventId", m.EventID, 0, MaxEventIDBytes)
}
