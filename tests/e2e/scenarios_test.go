package e2e_test

import (
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios"
)

// scenarioTick is several times what a turn takes, with others under way.
const scenarioTick = 250 * time.Millisecond

// sideBySide is how many scenarios are under way at once: enough to wait for many timers together, few enough for a machine of two cores.
const sideBySide = 8

// oneScenario is for who works on one: -run 'TestScenarios$' -scenario=Name.
var oneScenario = flag.String("scenario", "", "of TestScenarios: run the scenario of this name alone")

// TestScenarios runs the engine's scenarios on the deployed functions, but for those that take hours, and those that need a bucket: the reference stack has none.
func TestScenarios(t *testing.T) {
	all := slices.DeleteFunc(scenarios.All(scenarioTick), func(s scenarios.Scenario) bool {
		return s.Virtual || s.Large || *oneScenario != "" && s.Name != *oneScenario
	})
	if len(all) == 0 {
		t.Fatalf("there is no scenario %q", *oneScenario)
	}
	results := make([]result, len(all))
	slots := make(chan struct{}, sideBySide)
	var running sync.WaitGroup
	for i, s := range all {
		slots <- struct{}{}
		running.Go(func() {
			results[i] = carry(t.Context(), s, id(t, i))
			<-slots
		})
	}
	running.Wait()
	for i, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			r := results[i]
			if r.err != nil {
				t.Fatal(r.err)
			}
			if err := s.Check(t.Context(), hub.client, r.status); err != nil {
				t.Error(err)
			}
			if s.Calm != nil {
				calm(t, s, r.status)
			}
			valid(t, hub.client, r.status.InstanceID)
		})
	}
}

// calm gives what the end of an instance has led to a few seconds to come.
func calm(t *testing.T, s scenarios.Scenario, status client.Status) {
	t.Helper()
	var err error
	for range 50 {
		if err = s.Calm(t.Context(), hub.client, status); err == nil {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Error(err)
}

// result is how a scenario's instance ended.
type result struct {
	status client.Status
	err    error
}

// carry starts a scenario's instance, does what its client does, and waits for the end.
func carry(ctx context.Context, s scenarios.Scenario, id string) result {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	_, err := hub.client.Start(ctx, s.Name, s.Input, append(s.Start, client.WithInstanceID(id))...)
	if err == nil && s.Drive != nil {
		err = s.Drive(ctx, scenarios.World{Client: hub.client, Holder: httpHolder{}, Tick: scenarioTick, Pass: func(d time.Duration) { <-time.After(d) }}, id)
	}
	if err != nil {
		return result{err: err}
	}
	status, err := hub.client.Wait(ctx, id)
	return result{status, err}
}
