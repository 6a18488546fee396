package providertest

import (
	"cmp"
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/activities"
	"github.com/perdure/perdure/provider/providertest/internal/instances"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
	"github.com/perdure/perdure/provider/providertest/internal/messages"
	"github.com/perdure/perdure/provider/providertest/internal/optional"
	"github.com/perdure/perdure/provider/providertest/internal/queues"
	"github.com/perdure/perdure/provider/providertest/internal/turns"
)

// Report contains the number of tests that ran and the names of the excluded tests.
type Report struct {
	// Ran is the number of tests that ran.
	Ran int
	// NotApplicable contains the names (group/test) of the tests that require a capability that the harness does not
	// list.
	NotApplicable []string
}

// groups returns all tests in the order in which reports list them.
func groups() []kit.Group {
	return []kit.Group{
		turns.Atomicity(), messages.Creation(), queues.QueueSemantics(), queues.Records(), turns.Heads(),
		turns.Redispatch(), turns.Executions(), turns.References(), messages.Children(), turns.Blocked(),
		turns.Paused(), activities.CancelFlags(), activities.ActivityRecords(), messages.CancelChild(),
		messages.SentEvents(), messages.SentUpdates(), instances.Deletion(), optional.Retention(), optional.Jobs(),
		optional.Schedules(), optional.Annotations(), activities.WorkItems(), optional.Workers(),
		activities.Retries(), activities.Waits(), activities.Pending(), messages.Updates(), queues.Poison(),
		queues.Timers(), instances.Management(),
		turns.Histories(), turns.LargeTurns(), turns.Payloads(), optional.LargePayloads(), turns.Corruption(),
		turns.ErrorHandling(), queues.Locking(), queues.LockExpiry(),
	}
}

// Run runs the suite as subtests of t with the names group/test, and returns when all tests have ended. The tests of a
// group run in parallel. It fails t if the report differs from h.Want. Tests of capabilities in h.Lacks are skipped.
// With -short, Run skips long tests and does not check the report.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.runLacks(t)
	var ran atomic.Int64
	var got Report
	for _, g := range groups() {
		var cases []kit.Case
		for _, c := range g.Cases {
			c.Optional = cmp.Or(c.Optional, g.Optional)
			if h.lacks(c.Optional) || h.can(c.Needs) {
				cases = append(cases, c)
				continue
			}
			got.NotApplicable = append(got.NotApplicable, g.Name+"/"+c.Name)
		}
		h.runGroup(t, g.Name, cases, &ran)
	}
	if !slices.Equal(got.NotApplicable, h.Want.NotApplicable) {
		t.Errorf("not applicable: %q\nexpected: %q", got.NotApplicable, h.Want.NotApplicable)
	}
	if got.Ran = int(ran.Load()); got.Ran != h.Want.Ran && !selective() && !testing.Short() {
		t.Errorf("%d tests ran, expected: %d", got.Ran, h.Want.Ran)
	}
}

func (h Harness) runGroup(t *testing.T, name string, cases []kit.Case, ran *atomic.Int64) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				switch {
				case h.lacks(c.Optional):
					t.Skipf("the provider does not support %s", c.Optional)
				case c.Long && testing.Short():
					t.Skip("takes long; skipped with -short")
				}
				h.open(t, c.Visibility, func(f *kit.Fixture) {
					ran.Add(1)
					c.Run(f)
				})
			})
		}
	})
}

// open calls test with a hub whose queues have a visibility timeout.
func (h Harness) open(t *testing.T, visibility time.Duration, test func(f *kit.Fixture)) {
	t.Helper()
	config := Config{Visibility: cmp.Or(visibility, kit.LongVisibility)}
	h.Open(t, config, func(t *testing.T, hub Hub) {
		t.Helper()
		f := &kit.Fixture{Hub: hub, T: t, Capabilities: h.Capabilities, Lacks: h.Lacks}
		// make the reads that a provider makes only once, so that tests do not count them
		_, err := f.Provider.VerifyWorkItemToken(f.Ctx(), "")
		f.WantErrorIs(err, provider.ErrInvalidToken)
		test(f)
	})
}

// can reports whether the harness has all capabilities that a test needs.
func (h Harness) can(needs []Capability) bool {
	for _, need := range needs {
		if !slices.Contains(h.Capabilities, need) {
			return false
		}
	}
	return true
}

func (h Harness) lacks(c provider.Capability) bool { return slices.Contains(h.Lacks, c) }

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
