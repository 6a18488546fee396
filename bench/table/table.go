// Package table prints the measurements of all peers in tables.
package table

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/perdure/perdure/bench/measure"
	"github.com/perdure/perdure/bench/workload"
)

// Result is the result of one workload on one peer.
type Result struct {
	Peer     string `json:"peer"`
	Workload string `json:"workload"`
	// Server is true if the peer's store is a server.
	Server bool `json:"server"`
	// Cannot is the reason if the peer does not support the workload. Err is the error of a failed run.
	Cannot string `json:"cannot"`
	Err    string `json:"err"`

	Outcome workload.Outcome `json:"outcome"`
	Used    measure.Usage    `json:"used"`
	// Store counts the calls to the store. It is nil if they cannot be observed.
	Store *workload.Store `json:"store"`
}

func (r Result) ok() bool { return r.Err == "" && r.Cannot == "" }

// each divides a quantity by the number of activities.
func (r Result) each(quantity float64) float64 {
	if r.Outcome.Activities == 0 {
		return 0
	}
	return quantity / float64(r.Outcome.Activities)
}

// Rate returns the number of instances a second.
func (r Result) Rate() float64 {
	if r.Outcome.Wall <= 0 {
		return 0
	}
	return float64(r.Outcome.Instances) / r.Outcome.Wall.Seconds()
}

// CPU returns the CPU time of the process and its servers for each activity.
func (r Result) CPU() time.Duration {
	return time.Duration(r.each(float64(r.Used.Self + r.Used.Servers)))
}

// Latency returns the time of an activity if activities run one after another.
func (r Result) Latency() time.Duration { return time.Duration(r.each(float64(r.Outcome.Wall))) }

// Added returns the time that the engine adds to its store's for each activity. It is negative if store calls overlap.
func (r Result) Added() (d time.Duration, known bool) {
	if r.Store == nil {
		return 0, false
	}
	return r.Latency() - time.Duration(r.each(float64(r.Store.Time))), true
}

// Growth returns the time of an activity in the long chain, divided by that in the short chain.
func (r Result) Growth() float64 {
	if r.Outcome.ShortEach <= 0 {
		return 0
	}
	return float64(r.Outcome.LongEach) / float64(r.Outcome.ShortEach)
}

// column is a column of a table.
type column struct {
	head string
	cell func(r Result, base *Result) string
}

// section is a table for one workload.
type section struct {
	workload, title, note string
	columns               []column
}

// Write prints a table for each workload that has results. Ratios are to the peer named base.
func Write(w io.Writer, results []Result, base string) {
	for _, s := range sections() {
		var rows []Result
		var to *Result
		for _, r := range results {
			if r.Workload != s.workload {
				continue
			}
			rows = append(rows, r)
			if r.Peer == base && r.ok() {
				to = &r
			}
		}
		if len(rows) > 0 {
			s.write(w, rows, to)
		}
	}
	if best, ratio := Ahead(results, base); best != "" {
		fmt.Fprintf(w,
			"\nFive parallel activities: %s runs %.1f times as many orchestrations as the fastest peer, %s.\n",
			base, ratio, best)
	}
}

func (s section) write(w io.Writer, rows []Result, base *Result) {
	fmt.Fprintf(w, "\n%s\n%s\n\n", s.title, s.note)
	heads := []string{"peer", "store"}
	for _, c := range s.columns {
		heads = append(heads, c.head)
	}
	line(w, append(heads, "CPU of other programs"))
	line(w, strings.Split(strings.Repeat("---,", len(heads))+"---", ","))
	for _, r := range rows {
		cells := []string{r.Peer, "memory"}
		if r.Server {
			cells[1] = "server"
		}
		switch {
		case r.Err != "":
			cells = append(cells, "failed: "+firstLine(r.Err))
		case r.Cannot != "":
			cells = append(cells, "not measured: "+r.Cannot)
		default:
			for _, c := range s.columns {
				cells = append(cells, c.cell(r, base))
			}
			cells = append(cells, fmt.Sprintf("%.0f %%", 100*r.Used.Foreign(r.Outcome.Wall)))
		}
		for len(cells) < len(heads)+1 {
			cells = append(cells, "")
		}
		line(w, cells)
	}
}

func line(w io.Writer, cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ReplaceAll(s, "|", "/")
}

func sections() []section {
	return []section{
		{
			workload.Sequence, "Ten activities in a row, one instance after another",
			"Values are for each activity. Allocations exclude servers.",
			[]column{
				{"time", func(r Result, b *Result) string {
					return duration(r.Latency()) + times(r, b, Result.latency)
				}},
				{"of it the engine", func(r Result, _ *Result) string { return added(r) }},
				{"CPU", func(r Result, b *Result) string { return duration(r.CPU()) + times(r, b, Result.cpu) }},
				{"allocations", allocations},
				{"KB", func(r Result, _ *Result) string {
					return fmt.Sprintf("%.1f", r.each(float64(r.Used.Bytes))/1024)
				}},
				{"store calls", calls},
			},
		},
		{workload.Fan5, "Five parallel activities, twenty instances in flight", "", []column{
			{"instances a second", func(r Result, b *Result) string {
				return fmt.Sprintf("%.0f", r.Rate()) + times(r, b, Result.Rate)
			}},
			{"CPU an activity", func(r Result, b *Result) string {
				return duration(r.CPU()) + times(r, b, Result.cpu)
			}},
			{"allocations an activity", allocations},
			{"store calls an activity", calls},
		}},
		{workload.Fan1000, "One instance, 1,000 parallel activities", "", []column{
			{"time", func(r Result, b *Result) string { return duration(r.Outcome.Wall) + times(r, b, Result.wall) }},
			{"CPU an activity", func(r Result, b *Result) string {
				return duration(r.CPU()) + times(r, b, Result.cpu)
			}},
			{"store calls an activity", calls},
		}},
		{
			workload.Growth, "One instance, activities in a row: an activity of 1,600 and one of 100",
			"A ratio of 1 is linear.",
			[]column{
				{"of 100", func(r Result, _ *Result) string { return duration(r.Outcome.ShortEach) }},
				{"of 1,600", func(r Result, b *Result) string {
					return duration(r.Outcome.LongEach) + times(r, b, Result.long)
				}},
				{"ratio", func(r Result, _ *Result) string { return fmt.Sprintf("%.2f", r.Growth()) }},
			},
		},
		{
			workload.Timeout, "An activity that loses a race against a timer",
			"From the timer until the activity's context ended.",
			[]column{{"observed after", seen}},
		},
		{
			workload.Cancel, "An activity whose instance a client cancels",
			"From the call until the activity's context ended.",
			[]column{{"observed after", seen}},
		},
	}
}

func (r Result) latency() float64 { return float64(r.Latency()) }
func (r Result) cpu() float64     { return float64(r.CPU()) }
func (r Result) wall() float64    { return float64(r.Outcome.Wall) }
func (r Result) long() float64    { return float64(r.Outcome.LongEach) }

// times returns the ratio to the base, or an empty string if there is none.
func times(r Result, base *Result, of func(Result) float64) string {
	if base == nil || base.Peer == r.Peer || of(*base) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.3g×)", of(r)/of(*base))
}

func added(r Result) string {
	d, known := r.Added()
	switch {
	case !known:
		return "unknown"
	case d < 0:
		return "calls overlap"
	}
	return duration(d)
}

func calls(r Result, _ *Result) string {
	if r.Store == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", r.each(float64(r.Store.Calls)))
}

func allocations(r Result, _ *Result) string {
	return fmt.Sprintf("%.0f", r.each(float64(r.Used.Allocs)))
}

func seen(r Result, _ *Result) string {
	if r.Outcome.Never {
		return "never (5 s)"
	}
	return duration(r.Outcome.Seen)
}

func duration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
}

// Ahead returns the peer that runs the most orchestrations of five parallel activities, and the ratio of base to it. It
// ignores the rows of perdure itself. The name is empty if there is no peer or no result of base.
func Ahead(results []Result, base string) (peer string, ratio float64) {
	var own, best float64
	for _, r := range results {
		switch {
		case r.Workload != workload.Fan5 || !r.ok():
		case r.Peer == base:
			own = r.Rate()
		case strings.HasPrefix(r.Peer, base):
		case r.Rate() > best:
			peer, best = r.Peer, r.Rate()
		}
	}
	if own == 0 || best == 0 {
		return "", 0
	}
	return peer, own / best
}
