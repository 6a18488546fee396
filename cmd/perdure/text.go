package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes what others wrote safe for a terminal: no control characters, which might be escape sequences.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// excerpt is the beginning of a text in one line, of at most so many characters.
func excerpt(s string, longest int) string {
	line := oneLine(s[:min(len(s), 8*longest)]) // a bound on the work, not on the result
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// ending is what excerpt is, of the end of a text: of a role's session that is whose it is.
func ending(s string, longest int) string {
	if runes := []rune(oneLine(s)); len(runes) > longest {
		return "…" + string(runes[len(runes)-longest+1:])
	}
	return oneLine(s)
}

// span is a duration as a person reads it: three figures are enough.
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
