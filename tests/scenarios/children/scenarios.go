// Package children has scenarios of sub-orchestrations, detached orchestrations and continue-as-new.
package children

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		childScenarios(), childFailureScenarios(), detachedScenarios(tick), continueScenarios(tick),
	)
}

// Register adds the orchestration that the scenarios share.
func Register(r *perdure.Registry) { perdure.AddOrchestration(r, "Counting", counting) }
