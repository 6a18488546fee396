package scale

import (
	"fmt"
	"io"
	"time"
)

// WriteTable writes the measured times as a table in Markdown.
func WriteTable(w io.Writer, all []*Measured) error {
	const header = "| workload | in flight | time | samples | p50 | p99 | longest |\n" +
		"| --- | --: | --- | --: | --: | --: | --: |\n"
	if _, err := fmt.Fprint(w, header); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	for _, m := range all {
		if _, err := fmt.Fprintf(w, "| %s | %d | %s | %d | %s | %s | %s |\n", m.Shape.Name, m.InFlight, m.Shape.Of,
			m.Samples, text(m.P50), text(m.P99), text(m.Longest)); err != nil {
			return fmt.Errorf("scale: %w", err)
		}
	}
	return nil
}

// text formats a time: in milliseconds below a second, and otherwise in seconds.
func text(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
