package term

import (
	"fmt"
	"strings"
	"unicode"
)

// Escape returns a text whose control and format characters, such as those that change the direction of text, are
// visible as \u and their code. Line feeds and tabs stay. Invalid UTF-8 becomes U+FFFD.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(EscapeRune(r))
	}
	return b.String()
}

// EscapeRune returns a character in the form of Escape.
func EscapeRune(r rune) string {
	switch {
	case r == '\n', r == '\t', unicode.IsPrint(r):
		return string(r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}
