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
	columnVersion       = "VERSION"
)

// table is text in columns. The header of a right-aligned column begins with ">".
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

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
	for _, row := range all {
		b.WriteString(strings.TrimRight(layOut(row, widths, right), " ") + "\n")
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
