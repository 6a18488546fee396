// Package scenarios is a table of orchestrations with their expected results, by subject. Tests run the scenarios in
// virtual time, with a crash at every AWS call (tests/engine), and on deployed functions (tests/e2e).
//
// Other tests cover features that need more than an orchestration and a client. Starts in a transaction of the caller
// are tested in tests/engine, tests/ministack and tests/e2e. Schedules are tested in package schedule and tests/e2e.
package scenarios

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/activities"
	"github.com/perdure/perdure/tests/scenarios/basics"
	"github.com/perdure/perdure/tests/scenarios/cancellation"
	"github.com/perdure/perdure/tests/scenarios/children"
	"github.com/perdure/perdure/tests/scenarios/futures"
	"github.com/perdure/perdure/tests/scenarios/instances"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
	"github.com/perdure/perdure/tests/scenarios/messages"
	"github.com/perdure/perdure/tests/scenarios/versions"
)

// Scenario is an alias of kit.Scenario.
type Scenario = kit.Scenario

// World is an alias of kit.World.
type World = kit.World

// All returns all scenarios, with durations in ticks.
func All(tick time.Duration) []Scenario {
	return slices.Concat(
		basics.Scenarios(tick), activities.Scenarios(tick), futures.Scenarios(tick), children.Scenarios(tick),
		messages.Scenarios(tick), instances.Scenarios(tick), versions.Scenarios(tick), cancellation.Scenarios(tick),
	)
}

// Register adds the orchestrations and activities of scenarios, and those that all scenarios share.
func Register(r *perdure.Registry, all ...Scenario) {
	kit.Register(r)
	basics.Register(r)
	activities.Register(r)
	children.Register(r)
	cancellation.Register(r)
	for _, s := range all {
		s.Register(r, s.Name)
	}
}

// Hold gives a client of the hub to the activities of scenarios that need one.
func Hold(c *client.Client, all ...Scenario) {
	for _, s := range all {
		if s.Hold != nil {
			s.Hold(c)
		}
	}
}
