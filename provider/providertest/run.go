package providertest

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// Report lists which tests ran.
type Report struct {
	// Ran is the number of tests that ran.
	Ran int
	// NotApplicable holds the names, as group/test, of the tests that require an undeclared capability.
	NotApplicable []string
}

// testCase is a test of one guarantee.
type testCase struct {
	name  string
	run   func(f *fixture)
	needs []Capability
	// visibility is the visibility timeout of the queues; 0 selects a time that does not expire during the test.
	visibility time.Duration
	long       bool // a short run skips it
}

type group struct {
	name  string
	cases []testCase
}

const longVisibility = time.Minute

func groups() []group {
	return []group{
		atomicity(), creation(), queueSemantics(), records(), heads(), redispatch(), executions(), references(), children(), blocked(), pausedGroup(), cancelFlags(), activityRecords(), cancelChild(), sentEvents(), sentUpdates(), deletion(), retention(), jobs(), schedules(), workItems(), workers(), retries(), waits(), pendingGroup(), updates(), poison(), timers(),
		management(), histories(), largeTurns(), payloads(), largePayloads(), corruption(), errorHandling(), locking(), lockExpiry(),
	}
}

// Run runs the suite as subtests of t, named group/test, in parallel within a group, and returns when all have ended.
// It fails t if the report differs from h.Want. With -short it skips long tests and does not check the report.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	var got Report
	for _, g := range groups() {
		var cases []testCase
		for _, c := range g.cases {
			if h.can(c.needs) {
				cases = append(cases, c)
				continue
			}
			got.NotApplicable = append(got.NotApplicable, g.name+"/"+c.name)
		}
		h.runGroup(t, group{g.name, cases}, &ran)
	}
	if !slices.Equal(got.NotApplicable, h.Want.NotApplicable) {
		t.Errorf("not applicable: %q\nexpected: %q", got.NotApplicable, h.Want.NotApplicable)
	}
	if got.Ran = int(ran.Load()); got.Ran != h.Want.Ran && !selective() && !testing.Short() {
		t.Errorf("%d tests ran, expected: %d", got.Ran, h.Want.Ran)
	}
}

func (h Harness) runGroup(t *testing.T, g group, ran *atomic.Int64) {
	t.Helper()
	t.Run(g.name, func(t *testing.T) {
		for _, c := range g.cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if c.long && testing.Short() {
					t.Skip("takes long; skipped with -short")
				}
				config := Config{Visibility: c.visibility}
				if config.Visibility == 0 {
					config.Visibility = longVisibility
				}
				h.Open(t, config, func(t *testing.T, hub Hub) {
					t.Helper()
					ran.Add(1)
					f := &fixture{Hub: hub, p: hub.Provider, t: t, capabilities: h.Capabilities}
					// tests must not count reads that a provider makes once
					_, err := f.p.VerifyWorkItemToken(f.ctx(), "")
					f.wantIs(err, provider.ErrInvalidToken)
					c.run(f)
				})
			})
		}
	})
}

func (h Harness) can(needs []Capability) bool {
	for _, need := range needs {
		if !slices.Contains(h.Capabilities, need) {
			return false
		}
	}
	return true
}

// selective reports whether the command line selects only some tests of the suite.
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
