package term

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

func OneLine(s string) string { return Clean(strings.Join(strings.Fields(s), " ")) }

const MaxName = 32

// Width returns the number of columns of a text.
func Width(text string) int {
	columns := 0
	for line := range strings.Lines(text) {
		columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return columns
}

const MaxDetail = 72

// maxShown is how many instances the last line names.
const maxShown = 5

// SomeOf names some of so many instances.
func SomeOf(ids []string, all int) string {
	shown := ids[:min(len(ids), maxShown)]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func Number(n int64) string { return strconv.FormatInt(n, 10) }

// TimeOrDash returns a time, or a dash for the zero time.
func TimeOrDash(t time.Time) string {
	if t.IsZero() {
		return OrDash("")
	}
	return Time(t)
}

// Clean makes foreign text safe for a terminal: it has no control characters, which might be escape sequences.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// ShellQuote returns a word as a shell reads it, for commands that are printed to be pasted.
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

// Excerpt returns the beginning of a text in one line, of at most longest characters.
func Excerpt(s string, longest int) string {
	line := OneLine(s[:min(len(s), 8*longest)]) // bounds the work, not the result
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// Ending is excerpt for the end of a text: in a role's session, the end names the user.
func Ending(s string, longest int) string {
	if runes := []rune(OneLine(s)); len(runes) > longest {
		return "…" + string(runes[len(runes)-longest+1:])
	}
	return OneLine(s)
}

// ScreenWidth is the number of columns that sentences are wrapped to.
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

// hashLength is the number of characters that are shown of a hash.
const hashLength = 12

// BuildID returns the ID of a build. Of a hash, it returns the first characters.
func BuildID(id string) string {
	if len(id) > hashLength && strings.Trim(id, "0123456789abcdef") == "" {
		return id[:hashLength]
	}
	return Excerpt(id, MaxName)
}

// Duration returns a duration as a person reads it: three figures are enough.
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

func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// Labels is a block of lines, each with its label; what has no value has no line.
type Labels struct{ strings.Builder }

func (b *Labels) Line(label, value string) {
	if value != "" {
		fmt.Fprintf(b, "%-13s  %s\n", label, Clean(value))
	}
}

func OrDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}
