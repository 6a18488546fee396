// Package messages has scenarios of external events, updates, queries and entities.
package messages

import (
	"slices"
	"time"

	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		eventScenarios(tick), instanceEventScenarios(tick), queryScenarios(), callScenarios(), sizeScenarios(),
	)
}
