// Package activities has scenarios of activities: failures, retries, polling, inline execution, completion tokens and
// clients in activities.
package activities

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(tick time.Duration) []kit.Scenario {
	return slices.Concat(
		inlineScenarios(tick), failureScenarios(tick), retryScenarios(tick), pollScenarios(tick), tokenScenarios(tick),
		clientScenarios(tick),
	)
}

// Register adds the activity and the orchestrations that the scenarios share.
func Register(r *perdure.Registry) {
	perdure.AddActivity(r, storeTokenName, storeToken)
	perdure.AddOrchestration(r, "Reserves", reserveItem)
	perdure.AddOrchestration(r, "Panics", panics)
	perdure.AddOrchestration(r, "FlakyChild", flakyChild)
}
