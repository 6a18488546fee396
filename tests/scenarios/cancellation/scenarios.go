// Package cancellation has scenarios of cancellation and compensation. Each decision is in the history, and the
// cancelled work observes it.
package cancellation

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		requestScenarios(tick), decisionScenarios(tick), compensationScenarios(),
	)
}

// Register adds the activity and the orchestration that the scenarios share.
func Register(r *perdure.Registry) {
	perdure.AddActivity(r, watchName, watch)
	perdure.AddOrchestration(r, "UnwindsSlowly", cleanUpSlowly)
}
