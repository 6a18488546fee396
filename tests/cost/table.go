package cost

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// column is a column of the table.
type column struct {
	title string
	value func(b *Bill) float64
}

// dollars are the columns of what a million cost.
var dollars = []column{
	{"total", func(b *Bill) float64 { return b.Total }},
	{"table: writes", func(b *Bill) float64 { return b.Writes }},
	{"table: reads", func(b *Bill) float64 { return b.Reads }},
	{"SQS: functions", func(b *Bill) float64 { return b.Sends }},
	{"SQS: mappings", func(b *Bill) float64 { return b.Receives + b.Deletes }},
	{"invocations", func(b *Bill) float64 { return b.Requests }},
	{"GB-seconds", func(b *Bill) float64 { return b.Durations }},
	{"schedules", func(b *Bill) float64 { return b.Schedules }},
}

// amounts are the columns of what one takes.
var amounts = []column{
	{"write units", func(b *Bill) float64 { return b.WriteUnits }},
	{"read units", func(b *Bill) float64 { return b.ReadUnits }},
	{"SQS requests", func(b *Bill) float64 { return b.SQSRequests }},
	{"invocations", func(b *Bill) float64 { return b.Invocations }},
	{"GB-seconds", func(b *Bill) float64 { return b.GBSeconds }},
}

// WriteDollars writes the table of what a million cost, in Markdown.
func WriteDollars(w io.Writer, bills []Bill) error {
	return writeTable(w, bills, dollars, func(x float64) string {
		return strconv.FormatFloat(x, 'f', 2, 64)
	})
}

// WriteAmounts writes the table of what one takes, in Markdown.
func WriteAmounts(w io.Writer, bills []Bill) error {
	return writeTable(w, bills, amounts, func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) })
}

func writeTable(w io.Writer, bills []Bill, columns []column, number func(float64) string) error {
	header, line := []string{"workload"}, []string{"---"}
	for _, c := range columns {
		header, line = append(header, c.title), append(line, "--:")
	}
	rows := [][]string{header, line}
	for i := range bills {
		row := []string{bills[i].Name}
		for _, c := range columns {
			text := number(c.value(&bills[i]))
			if c.value(&bills[i]) == 0 {
				text = ""
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return fmt.Errorf("cost: %w", err)
		}
	}
	return nil
}

// ReadDollars reads the totals back out of a page that WriteDollars has written into, by name.
func ReadDollars(page string) (map[string]float64, error) {
	totals := map[string]float64{}
	in := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		in = strings.HasPrefix(line, "| workload | total |") || in && strings.HasPrefix(line, "|")
		if !in || len(cells) < 2 {
			continue
		}
		name, total := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		if name == "workload" || strings.HasPrefix(name, "---") {
			continue
		}
		x, err := strconv.ParseFloat(total, 64)
		if err != nil {
			return nil, fmt.Errorf("cost: the row of %q: %w", name, err)
		}
		totals[name] = x
	}
	return totals, nil
}
