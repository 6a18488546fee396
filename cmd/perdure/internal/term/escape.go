package term

import (
	"fmt"
	"unicode"
)

// EscapeRune returns a character of a text. Control and format characters, such as those that change the direction of
// text, are visible as \u and their code. Line feeds and tabs stay.
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
