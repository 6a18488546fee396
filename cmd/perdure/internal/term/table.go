package term

import (
	"strings"
	"unicode/utf8"
)

// Column headers that several tables share.
const (
	ColumnName          = "NAME"
	ColumnOrchestration = "ORCHESTRATION"
	ColumnStarted       = "STARTED"
	ColumnStatus        = "STATUS"
	ColumnVersion       = "VERSION"
)

// Table is text in columns. The header of a right-aligned column begins with ">".
type Table struct {
	Header []string
	rows   [][]string
	// notes contains the lines below a row, by the index of the row.
	notes map[int][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Note adds lines below the last row.
func (t *Table) Note(lines ...string) {
	if t.notes == nil {
		t.notes = map[int][]string{}
	}
	last := len(t.rows) - 1
	t.notes[last] = append(t.notes[last], lines...)
}

// NoteIndent is the indentation of the lines below a row.
const NoteIndent = "      "

// String returns the table as text. The last column is not padded.
func (t *Table) String() string {
	right := make([]bool, len(t.Header))
	header := make([]string, len(t.Header))
	widths := make([]int, len(t.Header))
	for i, h := range t.Header {
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
		for _, line := range t.notes[i-1] { // the first line of all is the header
			b.WriteString(NoteIndent + line + "\n")
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
