package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes foreign text safe for a terminal: it has no control characters, which might be escape sequences.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// shellQuoted returns a word as a shell reads it, for commands that are printed to be pasted.
func shellQuoted(s string) string {
	s = clean(s)
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@+,%", r)
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// excerpt returns the beginning of a text in one line, of at most longest characters.
func excerpt(s string, longest int) string {
	line := oneLine(s[:min(len(s), 8*longest)]) // bounds the work, not the result
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// ending is excerpt for the end of a text: in a role's session, the end names the user.
func ending(s string, longest int) string {
	if runes := []rune(oneLine(s)); len(runes) > longest {
		return "…" + string(runes[len(runes)-longest+1:])
	}
	return oneLine(s)
}

// screenWidth is the number of columns that sentences are wrapped to.
const screenWidth = 100

// wrapped returns a text in lines of at most width columns. The first line begins with head, the others are indented by
// its width. Longer words are split.
func wrapped(head, text string, width int) []string {
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

// buildText returns the ID of a build. Of a hash, it returns the first characters.
func buildText(id string) string {
	if len(id) > hashLength && strings.Trim(id, "0123456789abcdef") == "" {
		return id[:hashLength]
	}
	return excerpt(id, longestName)
}

// span returns a duration as a person reads it: three figures are enough.
func span(d time.Duration) string {
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

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// labelled is a block of lines, each with its label; what has no value has no line.
type labelled struct{ strings.Builder }

func (b *labelled) line(label, value string) {
	if value != "" {
		fmt.Fprintf(b, "%-13s  %s\n", label, clean(value))
	}
}
