package cost

import (
	"fmt"
	"io"

	"github.com/perdure/perdure/internal/pricing"
)

// Beside is what no instance causes, or only what it is not billed with. No emulator bills it, so it is reckoned: by what the row says.
type Beside struct {
	What    string  `json:"what"`
	Per     string  `json:"per"`
	Least   float64 `json:"least"` // dollars
	Most    float64 `json:"most"`
	Because string  `json:"because"`
}

// What the rows are reckoned from.
const (
	// A mapping that has nothing to do asks its queue with five pollers, each for 20 s, and with up to five times as many after it was busy.
	leastReceives, mostReceives = 15, 75
	minutesAMonth               = 30 * 24 * 60
	// START, END and REPORT of an invocation, as JSON.
	platformLines = 1000
	// The lines of metrics by hub of a fan-out of five (BenchmarkFanOf5Observed), by its activities.
	metricLines = 1067.0 / 5
)

// AllBeside are the rows that docs/operate/cost.md has beside the shapes.
func AllBeside(l *pricing.List) []Beside {
	idle := func(queue string, i pricing.Item) Beside {
		return Beside{
			What: "idle " + queue + " queue", Per: "a month",
			Least: l.Of(i, leastReceives*minutesAMonth), Most: l.Of(i, mostReceives*minutesAMonth),
			Because: fmt.Sprintf("%d to %d empty receives a minute", leastReceives, mostReceives),
		}
	}
	looks := func(what string, every, eventual float64) Beside {
		units := 1 + (1/every-1)*eventual // one a second is strongly consistent
		hour := l.Of(pricing.ReadUnits, 3600*units)
		return Beside{
			What: what, Per: "1,000 hours", Least: 1000 * hour, Most: 1000 * hour,
			Because: fmt.Sprintf("%.1f read units a second", units),
		}
	}
	logs := l.Of(pricing.LogBytes, platformLines*million)
	start := l.Of(pricing.HTTPRequests, million) + l.Of(pricing.Invocations, million) +
		l.Of(pricing.GBSeconds, million*Memory[Worker]*startSeconds)
	return []Beside{
		idle("FIFO", pricing.FIFORequests), idle("standard", pricing.StandardRequests),
		looks("cancel polls of a process, for each instance with running activities", 0.25, 0.5),
		looks("the same, with one poll a second", 1, 1),
		{
			What: "Lambda's own log lines", Per: "a million invocations", Least: 0, Most: logs,
			Because: "off in the stack (system log level WARN); 1 KB an invocation by default",
		},
		{
			What: "metric lines by hub", Per: "a million activities",
			Least: 0, Most: l.Of(pricing.LogBytes, metricLines*million),
			Because: "off by default; 1,067 bytes for five activities, more with one message an invocation",
		},
		{
			What: "starts over HTTP", Per: "a million", Least: start, Most: start,
			Because: "an API request and a 256 MB invocation of 30 ms",
		},
	}
}

// startSeconds is how long the API's function takes for a start: two writes and a send.
const startSeconds = 0.03

// WriteBeside writes the table of them, in Markdown.
func WriteBeside(w io.Writer, rows []Beside) error {
	if _, err := fmt.Fprint(w, "| item | per | dollars | basis |\n| --- | --- | --: | --- |\n"); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	for _, r := range rows {
		price := fmt.Sprintf("%.2f", r.Most)
		if r.Least != r.Most {
			price = fmt.Sprintf("%.2f to %.2f", r.Least, r.Most)
		}
		if _, err := fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.What, r.Per, price, r.Because); err != nil {
			return fmt.Errorf("cost: %w", err)
		}
	}
	return nil
}
