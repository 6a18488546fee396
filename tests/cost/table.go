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
	value func(b *Bill) string
}

// columns has the columns of the workloads: the dollars for a million units, and the quantities for one unit.
var columns = []column{
	{"total", func(b *Bill) string { return cents(b.Total) }},
	{"write units", func(b *Bill) string { return digits(b.WriteUnits) }},
	{"read units", func(b *Bill) string { return digits(b.ReadUnits) }},
	{"SQS requests", func(b *Bill) string { return digits(b.SQSRequests) }},
	{"invocations", func(b *Bill) string { return digits(b.Invocations) }},
	{"GB-seconds", func(b *Bill) string { return digits(b.GBSeconds) }},
}

func cents(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

func digits(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// WriteWorkloads writes the table of the workloads in Markdown, with the dollars for a million units and the quantities
// for one unit.
func WriteWorkloads(w io.Writer, bills []Bill) error { return writeTable(w, workloads, bills, columns) }

// WriteBlocks writes the price list of the blocks in Markdown. It omits Step blocks.
func WriteBlocks(w io.Writer, blocks []Block, bills []Bill) error {
	shown := make([]Bill, 0, len(bills))
	for i := range bills {
		if !blocks[i].Step {
			shown = append(shown, bills[i])
		}
	}
	return writeTable(w, blockList, shown, columns[:1])
}

// The titles of the first columns, which identify the tables on a page.
const (
	workloads = "workload"
	blockList = "building block"
)

func writeTable(w io.Writer, first string, bills []Bill, columns []column) error {
	header, line := []string{first}, []string{"---"}
	for _, c := range columns {
		header, line = append(header, c.title), append(line, "--:")
	}
	rows := [][]string{header, line}
	for i := range bills {
		row := []string{bills[i].Name}
		for _, c := range columns {
			row = append(row, c.value(&bills[i]))
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

// ReadWorkloads returns the totals by name from a page with the table of WriteWorkloads.
func ReadWorkloads(page string) (map[string]float64, error) { return readTable(page, workloads) }

// ReadBlocks returns the totals by name from a page with the table of WriteBlocks.
func ReadBlocks(page string) (map[string]float64, error) { return readTable(page, blockList) }

func readTable(page, first string) (map[string]float64, error) {
	totals := map[string]float64{}
	in := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		in = strings.HasPrefix(line, "| "+first+" | total |") || in && strings.HasPrefix(line, "|")
		if !in || len(cells) < 2 {
			continue
		}
		name, total := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		if name == first || strings.HasPrefix(name, "---") {
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
