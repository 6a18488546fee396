// Package instances has scenarios of starting, pausing, replacing, purging and restarting instances.
package instances

import (
	"slices"
	"time"

	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		startScenarios(tick), pauseScenarios(tick), idConflictScenarios(tick), restartScenarios(tick),
	)
}
