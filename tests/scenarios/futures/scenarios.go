// Package futures has scenarios of futures: combinators, Map, coroutines, races and futures that no code awaits.
package futures

import (
	"slices"
	"time"

	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		combinatorScenarios(tick), mapScenarios(tick), coroutineScenarios(tick), raceScenarios(tick),
		unawaitedScenarios(tick),
	)
}
