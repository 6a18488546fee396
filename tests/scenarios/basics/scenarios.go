// Package basics has scenarios of single features: activities in sequence and in parallel, custom status,
// determinism and large payloads.
package basics

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		basicScenarios(), statusScenarios(tick), determinismScenarios(tick), largeScenarios(), togetherScenarios(tick),
	)
}

// Register adds the activity that the scenarios share.
func Register(r *perdure.Registry) { addLarge(r) }
