package main

import (
	"fmt"
	"strings"
)

// mostNamed is how many instances the last line names.
const mostNamed = 5

// named names some of so many instances.
func named(ids []string, all int) string {
	shown := ids[:min(len(ids), mostNamed)]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
