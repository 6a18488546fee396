package dispatch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/shortrun"
)

// A seed of the simulation always has the same order, for every scenario, intervention and problem. Otherwise a failed
// seed could not be repeated.
func TestSimulationOrder_sameSeed_sameOrder(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for first, s := range simulated() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			n := uint64(len(simulated()))
			for turn := *firstSeed / n; turn < *firstSeed/n+*twice; turn++ {
				wantOneOrder(t, turn*n+uint64(first), func(seed uint64) []string { return simulate(t, seed).Trace() })
			}
		})
	}
	t.Run("calls", func(t *testing.T) {
		t.Parallel()
		for seed := *firstSeed; seed < *firstSeed+4**twice; seed++ {
			wantOneOrder(t, seed, func(seed uint64) []string { return simulateCalls(t, seed, nil).h.Scheduler.Trace() })
		}
	})
	for _, s := range problems() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := *firstSeed; seed < *firstSeed+*twice; seed++ {
				wantOneOrder(t, seed, func(seed uint64) []string { return s.runSeed(t, seed).h.Scheduler.Trace() })
				wantOneOrder(t, seed, func(seed uint64) []string {
					return simulateCalls(t, seed, &s).h.Scheduler.Trace()
				})
			}
		})
	}
}

// wantOneOrder runs a seed twice, and fails if the orders differ.
func wantOneOrder(t *testing.T, seed uint64, run func(seed uint64) []string) {
	t.Helper()
	one, two := run(seed), run(seed)
	if slices.Equal(one, two) {
		return
	}
	n := 0
	for n < min(len(one), len(two)) && one[n] == two[n] {
		n++
	}
	t.Errorf("seed %d: two runs differ after %d decisions:\n%s\n1: %s\n2: %s",
		seed, n, strings.Join(one[max(0, n-12):n], "\n"), at(one, n), at(two, n))
}

// at returns the n-th decision of a trace, if it exists.
func at(trace []string, n int) string {
	if n == len(trace) {
		return "the end"
	}
	return trace[n]
}
