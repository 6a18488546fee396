package e2e_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/e2e/app"
	"github.com/perdure/perdure/tests/scenarios"
)

// scenarioTick is several times the duration of a turn on a loaded machine.
const scenarioTick = 250 * time.Millisecond

// sideBySide is the number of scenarios that run concurrently. Their waits for timers overlap, and two processor cores
// suffice.
const sideBySide = 8

// someScenarios selects scenarios: -run 'TestScenarios$' -scenario=Name,Another.
var someScenarios = flag.String("scenario", "", "of TestScenarios: run the scenarios of these names alone")

// TestScenarios runs the scenarios of the engine on the deployed functions, except for scenarios that take hours.
func TestScenarios(t *testing.T) {
	runScenarios(t, hub.client, "", func(s *scenarios.Scenario) bool { return !s.Virtual })
}

// encrypted lists the scenarios without large payloads that also run with encrypted payloads. Together with the large
// ones, they have each kind of payload.
var encrypted = []string{
	"Updates", "Queries", "FanOutFanIn", "Child", "EternalWithEventsInFlight", "SideEffectOnce", "CustomStatus",
	"InlineChain", "RestartFromAnEvent", "EventsBetweenInstances", "AllFeaturesTogether",
}

// TestScenariosEncrypted runs some scenarios with payloads that the functions encrypt.
func TestScenariosEncrypted(t *testing.T) {
	runScenarios(t, hub.encrypting, app.EncryptedPrefix, func(s *scenarios.Scenario) bool {
		return s.Large || slices.Contains(encrypted, s.Name)
	})
}

// runScenarios runs scenarios concurrently. The IDs of their instances have a prefix.
func runScenarios(t *testing.T, c *client.Client, prefix string, of func(*scenarios.Scenario) bool) {
	t.Helper()
	all := slices.DeleteFunc(scenarios.All(scenarioTick), func(s scenarios.Scenario) bool {
		return !of(&s) || *someScenarios != "" && !slices.Contains(strings.Split(*someScenarios, ","), s.Name)
	})
	if len(all) == 0 {
		t.Fatalf("unknown scenario %q", *someScenarios)
	}
	results := make([]result, len(all))
	slots := make(chan struct{}, sideBySide)
	var running sync.WaitGroup
	for i, s := range all {
		slots <- struct{}{}
		running.Go(func() {
			results[i] = runScenario(t.Context(), c, s, prefix+id(t, i))
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
			if err := s.Check(t.Context(), c, r.status); err != nil {
				t.Error(err)
			}
			if s.CheckWithoutFaults != nil {
				faultless(t, c, s, r.status)
			}
			valid(t, c, r.status.InstanceID)
		})
	}
}

// faultless waits a few seconds for the effects of the end of an instance, and then runs the additional check of the
// scenario.
func faultless(t *testing.T, c *client.Client, s scenarios.Scenario, status client.Status) {
	t.Helper()
	var err error
	for range 50 {
		if err = s.CheckWithoutFaults(t.Context(), c, status); err == nil {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Error(err)
}

// result is the result of the instance of a scenario.
type result struct {
	status client.Status
	err    error
}

// runScenario starts the instance of a scenario, runs the client part of the scenario, and waits for the end.
func runScenario(ctx context.Context, c *client.Client, s scenarios.Scenario, id string) result {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	_, err := c.Start(ctx, s.Name, s.Input, append(s.Start, client.WithInstanceID(id))...)
	if err == nil && s.Drive != nil {
		err = s.Drive(ctx,
			scenarios.World{Client: c, Holder: httpHolder{}, Tick: scenarioTick, Pass: func(d time.Duration) {
				<-time.After(d)
			}}, id)
	}
	if err != nil {
		return result{err: err}
	}
	status, err := c.Wait(ctx, id)
	return result{status, err}
}
