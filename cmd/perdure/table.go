package main

import (
	"strings"
	"unicode/utf8"
)

// The headers of columns that many tables have.
const (
	columnName          = "NAME"
	columnOrchestration = "ORCHESTRATION"
	columnStarted       = "STARTED"
	columnStatus        = "STATUS"
	columnVersion       = "VERSION"
)

// table is text in columns. The header of a right-aligned column begins with ">".
type table struct {
	header []string
	rows   [][]string
	// notes are lines below a row, by its index.
	notes map[int][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// note adds lines below the last row.
func (t *table) note(lines ...string) {
	if t.notes == nil {
		t.notes = map[int][]string{}
	}
	last := len(t.rows) - 1
	t.notes[last] = append(t.notes[last], lines...)
}

// noteIndent is the indentation of the lines below a row.
const noteIndent = "      "

// String lays the table out; the last column is not padded.
func (t *table) String() string {
	right := make([]bool, len(t.header))
	header := make([]string, len(t.header))
	widths := make([]int, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.CutPrefix(h, ">")
	}
	all := append([][]string{header}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}

	var b strings.Builder
	for i, row := range all {
		b.WriteString(strings.TrimRight(layOut(row, widths, right), " ") + "\n")
		for _, line := range t.notes[i-1] { // all begins with the header
			b.WriteString(noteIndent + line + "\n")
		}
	}
	return b.String()
}

func layOut(row []string, widths []int, right []bool) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if cells[i] = cell + padding; right[i] {
			cells[i] = padding + cell
		}
	}
	return strings.Join(cells, "  ")
}
