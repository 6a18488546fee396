// Package term formats tables and texts for a terminal.
package term

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of the length of texts in tables.
const (
	MaxName   = 32
	MaxDetail = 72
)

// OneLine returns a text as one line that is safe for a terminal.
func OneLine(s string) string { return Clean(strings.Join(strings.Fields(s), " ")) }

// Width returns the number of columns of a text.
func Width(text string) int {
	columns := 0
	for line := range strings.Lines(text) {
		columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return columns
}

// maxShown is the number of IDs that SomeOf returns.
const maxShown = 5

// SomeOf returns the first IDs and the number of the remaining IDs. all is the total number of IDs.
func SomeOf(ids []string, all int) string {
	shown := ids[:min(len(ids), maxShown)]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Number returns a number in decimal digits.
func Number(n int64) string { return strconv.FormatInt(n, 10) }

// TimeOrDash returns a time, or a dash for the zero time.
func TimeOrDash(t time.Time) string {
	if t.IsZero() {
		return OrDash("")
	}
	return Time(t)
}

// Clean replaces the control characters of a text, because they may be escape sequences of the terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// ShellQuote quotes a word for a shell if necessary, because users paste the printed commands.
func ShellQuote(s string) string {
	s = Clean(s)
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@+,%", r)
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Excerpt returns the beginning of a text as one line of at most longest characters.
func Excerpt(s string, longest int) string {
	line := OneLine(s[:min(len(s), 8*longest)]) // a limit of the work for long texts
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// Ending is like Excerpt, but returns the end of a text. The end of a role session identifies the user.
func Ending(s string, longest int) string {
	if runes := []rune(OneLine(s)); len(runes) > longest {
		return "…" + string(runes[len(runes)-longest+1:])
	}
	return OneLine(s)
}

// ScreenWidth is the maximum number of columns of wrapped text.
const ScreenWidth = 100

// Wrap returns a text in lines of at most width columns. The first line begins with head, the others are indented by
// its width. Longer words are split.
func Wrap(head, text string, width int) []string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	longest := width - len(indent)
	lines := []string{head}
	left := longest
	for field := range strings.FieldsSeq(text) {
		for word := range slices.Chunk([]rune(field), longest) {
			last := &lines[len(lines)-1]
			switch {
			case left == longest: // the first word of its line
				*last += string(word)
				left -= len(word)
			case len(word) < left:
				*last += " " + string(word)
				left -= len(word) + 1
			default:
				lines = append(lines, indent+string(word))
				left = longest - len(word)
			}
		}
	}
	return lines
}

// hashLength is the number of characters of a hash that are printed.
const hashLength = 12

// BuildID returns the ID of a build. It shortens a hash to its first 12 characters.
func BuildID(id string) string {
	if len(id) > hashLength && strings.Trim(id, "0123456789abcdef") == "" {
		return id[:hashLength]
	}
	return Excerpt(id, MaxName)
}

// Duration returns a duration with about three digits.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
}

// Time returns a time in UTC, in seconds.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// Labels is a block of lines with labels.
type Labels struct{ strings.Builder }

// Line adds a line if the value is not empty.
func (b *Labels) Line(label, value string) {
	if value != "" {
		fmt.Fprintf(b, "%-13s  %s\n", label, Clean(value))
	}
}

// OrDash returns a text, or a dash for an empty one.
func OrDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

// LineWriter replaces control characters in lines, because AWS returns texts of other programs. Each write is a line.
type LineWriter struct{ io.Writer }

// Write implements io.Writer.
func (w LineWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, Clean(strings.TrimSuffix(string(line), "\n"))+"\n"); err != nil {
		return 0, err
	}
	return len(line), nil
}
