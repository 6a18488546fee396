package providertest

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Report says what Run did.
type Report struct {
	// Ran is how many tests ran.
	Ran int
	// NotApplicable names the tests that need a capability which the harness does not declare, as group/name.
	NotApplicable []string
}

// testCase is a test of one guarantee.
type testCase struct {
	name  string
	run   func(f *fixture)
	needs []Capability
	// visibility of the queues; 0 is long enough to be out of the way.
	visibility time.Duration
}

type group struct {
	name  string
	cases []testCase
}

const longVisibility = time.Minute

func groups() []group {
	return []group{
		atomicity(), creation(), queueSemantics(), records(), heads(), redispatch(), workItems(), timers(),
		management(), histories(), largeTurns(), payloads(), corruption(), errorHandling(),
	}
}

// Run runs the suite as subtests of t, named group/test, in parallel within a group, and returns when all have ended.
// A test whose capabilities are declared and that did not run, although nothing selects tests by name, fails t.
func Run(t *testing.T, h Harness) Report {
	t.Helper()
	var ran atomic.Int64
	var report Report
	applicable := 0
	for _, g := range groups() {
		var cases []testCase
		for _, c := range g.cases {
			if missing := h.missing(c); len(missing) > 0 {
				report.NotApplicable = append(report.NotApplicable, fmt.Sprintf("%s/%s needs %v", g.name, c.name, missing))
				continue
			}
			cases = append(cases, c)
		}
		applicable += len(cases)
		h.runGroup(t, group{g.name, cases}, &ran)
	}
	report.Ran = int(ran.Load())
	if report.Ran != applicable && !selective() {
		t.Errorf("%d of %d applicable tests ran", report.Ran, applicable)
	}
	for _, name := range report.NotApplicable {
		t.Log("not applicable:", name)
	}
	return report
}

func (h Harness) runGroup(t *testing.T, g group, ran *atomic.Int64) {
	t.Helper()
	t.Run(g.name, func(t *testing.T) {
		for _, c := range g.cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				config := Config{Visibility: c.visibility}
				if config.Visibility == 0 {
					config.Visibility = longVisibility
				}
				h.Open(t, config, func(t *testing.T, hub Hub) {
					t.Helper()
					ran.Add(1)
					c.run(&fixture{Hub: hub, p: hub.Provider, t: t})
				})
			})
		}
	})
}

func (h Harness) missing(c testCase) (missing []Capability) {
	for _, need := range c.needs {
		if !slices.Contains(h.Capabilities, need) {
			missing = append(missing, need)
		}
	}
	return missing
}

// selective reports whether the command line selects tests below the level of Run's caller, so that fewer run.
func selective() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		f := flag.Lookup(name)
		if f == nil {
			continue
		}
		if v := f.Value.String(); strings.Contains(v, "/") || name == "test.skip" && v != "" {
			return true
		}
	}
	return false
}
