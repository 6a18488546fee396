package selftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Report is the result of a run, and the --json output of selftest.
type Report struct {
	Run          string    `json:"run"`
	Account      string    `json:"account"`
	Region       string    `json:"region"`
	Architecture string    `json:"architecture"`
	Short        bool      `json:"short"`
	StartedAt    time.Time `json:"startedAt"`
	Minutes      float64   `json:"minutes"`

	DeploySeconds float64          `json:"deploySeconds"`
	Scenarios     []ScenarioResult `json:"scenarios"`
	Latencies     []Latency        `json:"latencies"`
	Cost          []Cost           `json:"cost"`
	Checks        []CheckResult    `json:"checks"`
	// Unchecked is the number of assumptions of docs/internals/aws-assumptions.md that no check has shown.
	Unchecked int `json:"unchecked"`
	// Remaining are the stack and the bucket of the run, if they were kept or could not be removed.
	Remaining []string `json:"remaining,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// failed reports whether a scenario or a check failed.
func (r *Report) failed() bool {
	return slices.ContainsFunc(r.Scenarios, func(s ScenarioResult) bool { return s.Error != "" }) ||
		slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Verdict == Differs })
}

// text returns the report as text.
func (r *Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "perdure self-test %s in account %s, region %s, %s\n", r.Run, r.Account, r.Region, r.Architecture)
	fmt.Fprintf(&b, "%s, %.1f minutes, deployment %.0f s\n", r.StartedAt.Format(time.RFC3339),
		r.Minutes, r.DeploySeconds)
	if r.Error != "" {
		fmt.Fprintf(&b, "did not run to its end: %s\n", term.OneLine(r.Error))
	}
	r.writeScenarios(&b)
	if len(r.Latencies) > 0 {
		t := term.Table{Header: []string{"LATENCY", ">SAMPLES", ">P50 MS", ">MAX MS"}}
		for _, l := range r.Latencies {
			t.Add(l.Name, strconv.Itoa(l.Samples), fmt.Sprintf("%.0f", l.P50), fmt.Sprintf("%.0f", l.Max))
		}
		b.WriteString("\n" + t.String())
	}
	if len(r.Cost) > 0 {
		t := term.Table{Header: []string{"COST OF A MILLION", ">ESTIMATE $", ">FORECAST $"}}
		for _, c := range r.Cost {
			t.Add(c.Name, fmt.Sprintf("%.2f", c.Estimated), fmt.Sprintf("%.2f", c.Forecast))
		}
		b.WriteString("\n" + t.String())
	}
	if len(r.Checks) > 0 {
		t := term.Table{Header: []string{"CHECK", "ASSUMPTIONS", "RESULT", "DETAIL"}}
		for _, c := range r.Checks {
			t.Add(c.Check, strings.Join(c.Assumptions, " "), string(c.Verdict), term.OneLine(c.Detail))
		}
		fmt.Fprintf(&b, "\n%s%d assumptions were not checked\n", t.String(), r.Unchecked)
	}
	if len(r.Remaining) > 0 {
		fmt.Fprintf(&b, "\nremaining: %s\n", strings.Join(r.Remaining, ", "))
	} else {
		b.WriteString("\neverything was removed\n")
	}
	return b.String()
}

// writeScenarios writes the number of passed scenarios, and the failed ones.
func (r *Report) writeScenarios(b *strings.Builder) {
	passed := 0
	t := term.Table{Header: []string{"FAILED SCENARIO", "INSTANCE", "ERROR"}}
	for _, s := range r.Scenarios {
		if s.Error == "" {
			passed++
			continue
		}
		t.Add(s.Name, s.Instance, term.OneLine(s.Error))
	}
	fmt.Fprintf(b, "\n%d of %d scenarios passed\n", passed, len(r.Scenarios))
	if passed < len(r.Scenarios) {
		b.WriteString(t.String())
	}
}
