package selftest

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// row is a row of the page: the ID of an assumption and, in the last column, its check.
var row = regexp.MustCompile("(?m)^\\| (A[0-9]+) \\|.*\\| `?([a-z0-9-]+)`? \\|$")

// The page lists for each assumption the check that exists, and no other.
func TestChecks_assumptions_matchPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/internals/aws-assumptions.md")
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := (&probes.Probes{}).All()
	checks := slices.Concat((&hub{}).hubChecks(&Report{}), slices.Concat(fast...), slices.Concat(slow...))
	want := map[string]string{}
	for _, c := range checks {
		for _, id := range c.Assumptions {
			if want[id] != "" {
				t.Errorf("%s has the checks %s and %s", id, want[id], c.Name)
			}
			want[id] = c.Name
		}
	}
	rows := row.FindAllStringSubmatch(string(page), -1)
	if len(rows) != assumptionCount {
		t.Errorf("the page has %d assumptions, the report counts %d", len(rows), assumptionCount)
	}
	for _, r := range rows {
		id, check := r[1], r[2]
		exists := check != "none"
		if exists && want[id] != check || !exists && want[id] != "" {
			t.Errorf("%s: the page has the check %s, the code %q", id, check, want[id])
		}
		delete(want, id)
	}
	for id, check := range want {
		t.Errorf("%s: the check %s is not in the page", id, check)
	}
}

func TestUnchecked_onlyAssumptionsThatHold_areChecked(t *testing.T) {
	t.Parallel()
	got := unchecked([]CheckResult{
		{Verdict: Holds, Assumptions: []string{"A1", "A2"}},
		{Verdict: Holds, Assumptions: []string{"A2"}},
		{Verdict: Differs, Assumptions: []string{"A3"}},
		{Verdict: NotShown, Assumptions: []string{"A4"}},
	})
	if got != assumptionCount-2 {
		t.Errorf("got %d, want %d", got, assumptionCount-2)
	}
}

func TestRunChecks_shortRun_omitsSlowChecks(t *testing.T) {
	t.Parallel()
	h := &hub{progress: io.Discard}
	all := []probes.Check{
		{Name: "quick", Run: func(context.Context) (string, error) { return "", nil }},
		{Name: "slow", Run: func(context.Context) (string, error) { return "", nil }, Slow: true},
	}
	if got := h.runChecks(t.Context(), all, true); len(got) != 1 || got[0].Check != "quick" {
		t.Errorf("short: got %v", got)
	}
	if got := h.runChecks(t.Context(), all, false); len(got) != len(all) {
		t.Errorf("complete: got %v", got)
	}
}

// A hub without schedules says nothing about their precision.
func TestSchedulePrecision_timers_decideWithSchedulesOnly(t *testing.T) {
	t.Parallel()
	late := &Report{Latencies: []Latency{{Name: scheduledTimers, Max: 31_000}}}
	h := &hub{deployment: &hubadmin.Admin{Config: dynamo.HubConfig{TimerMode: dynamo.TimersSchedules}}}
	if _, err := h.schedulePrecision(late); err == nil || !strings.Contains(err.Error(), "a timer was 31s late") {
		t.Errorf("late timer: got %v", err)
	}
	h.deployment.Config.TimerMode = dynamo.TimersRequeue
	_, err := h.schedulePrecision(late)
	if _, ok := errors.AsType[*probes.UndecidedError](err); !ok {
		t.Errorf("without schedules: got %v", err)
	}
}
