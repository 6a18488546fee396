// Package versions has scenarios of versions of an orchestration, and of changes within one.
package versions

import (
	"slices"
	"time"

	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// Scenarios returns the scenarios of this package, with durations in ticks.
func Scenarios(_ time.Duration) []kit.Scenario {
	return slices.Concat(
		versionScenarios(), changeScenarios(),
	)
}
