package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios"
)

// ScenarioResult is the result of a scenario. Error is empty if the scenario passed.
type ScenarioResult struct {
	Name     string  `json:"name"`
	Instance string  `json:"instance"`
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
}

// shortScenarios are the scenarios of a short run: one for each concept.
var shortScenarios = []string{
	"Chain", "FanOutFanIn", "InlineChain", "RetriedActivity", "CompensationAfterFailure", "TypedErrorThroughActivity",
	"Child", "ContinueAsNew", "Updates", "Queries", "EventAfterTheWait", "CancelledInstanceRunsCompensation",
	"RestartFromAnEvent", "PurgedWithChildren", "Exclusive", "LargeActivities", "ClientInActivity", "Entities",
}

// moreScenarios are the additional scenarios of a complete run. The scenarios that are missing race against timers
// that are too short for cold functions, or use files.
var moreScenarios = []string{
	"InlineFan", "InlineRetried", "InlineContinuesAsNew", "InlineCompensated", "RetriesExhausted", "RetriedChild",
	"ConditionMet", "PanicInBody", "PanicInActivity", "PanicInChild", "SideEffectOnce", "DeterministicUUID",
	"CustomStatus", "AllFeaturesTogether", "NestedChildren", "FanOutOfChildren", "ChildThatContinuesAsNew",
	"TerminatedChild", "ManyDetached", "EternalWithEventsInFlight", "ContinueAsNewCancelsOutstandingTasks", "Map",
	"First", "Fair", "AtMostOnce", "CoroutineOrder", "SentEventsInOrder", "EventToMissingInstance", "EventsInOrder",
	"DuplicateEvents", "EventsBetweenInstances", "CallsInOrder", "UpdatesOfAllSizes", "StartedOrUpdated", "Replaced",
	"PausedAndResumed", "DelayedStart", "Terminated", "CancelTree", "CancelChild", "CancelTimerNeverFires",
	"LargeChildren", "LargeContinuesAsNew", "VersionsOfAChange", "StartOfAVersion",
}

const (
	// tick is the unit of the durations in scenarios. It is longer than a cold start.
	tick            = time.Second
	shortTick       = 250 * time.Millisecond
	scenarioLimit   = 3 * time.Minute
	concurrentTests = 8
)

// selected returns the scenarios of a run.
func selected(short bool) []scenarios.Scenario {
	unit, names := tick, slices.Concat(shortScenarios, moreScenarios)
	if short {
		unit, names = shortTick, shortScenarios
	}
	return slices.DeleteFunc(scenarios.All(unit), func(s scenarios.Scenario) bool {
		return !slices.Contains(names, s.Name)
	})
}

// trial is a scenario that the self-test runs.
type trial struct {
	name, instance string
	run            func(ctx context.Context, instance string) error
}

// trials returns the scenarios of a run that may run concurrently.
func (h *hub) trials(short bool, unit time.Duration) []trial {
	var all []trial
	for _, s := range selected(short) {
		all = append(all, newTrial(s.Name, func(ctx context.Context, id string) error {
			return h.drive(ctx, &s, unit, id)
		}))
	}
	return append(all, h.operations(short)...)
}

func newTrial(name string, run func(ctx context.Context, instance string) error) trial {
	return trial{name, "scenario-" + name, run}
}

// runScenarios runs scenarios, at most concurrent of them at a time.
func (h *hub) runScenarios(ctx context.Context, all []trial, concurrent int) []ScenarioResult {
	results := make([]ScenarioResult, len(all))
	slots := make(chan struct{}, concurrent)
	var running sync.WaitGroup
	for i := range all {
		slots <- struct{}{}
		running.Go(func() {
			results[i] = h.runScenario(ctx, &all[i])
			<-slots
		})
	}
	running.Wait()
	return results
}

// runScenario runs a scenario.
func (h *hub) runScenario(run context.Context, t *trial) ScenarioResult {
	ctx, cancel := context.WithTimeout(run, scenarioLimit)
	defer cancel()
	began := h.now()
	r := ScenarioResult{Name: t.name, Instance: t.instance}
	err := t.run(ctx, r.Instance)
	r.Seconds = h.now().Sub(began).Seconds()
	if err != nil {
		r.Error = err.Error()
	}
	switch {
	case run.Err() != nil: // of no interest
	case err == nil:
		h.printf("passed %-36s %5.1f s", r.Name, r.Seconds)
	default:
		h.printf("FAILED %s: %s", r.Name, r.Error)
	}
	return r
}

// drive runs the instance of a scenario, and checks its result and its history.
func (h *hub) drive(ctx context.Context, s *scenarios.Scenario, unit time.Duration, id string) error {
	_, err := h.client.Start(ctx, s.Name, s.Input, append(slices.Clone(s.Start), client.WithInstanceID(id))...)
	if err != nil {
		return err
	}
	if s.Drive != nil {
		if err := s.Drive(ctx, scenarios.World{
			Client: h.client, Tick: unit, Pass: func(d time.Duration) { _ = h.sleep(ctx, d) },
		}, id); err != nil {
			return err
		}
	}
	status, err := h.client.Wait(ctx, id)
	if err != nil {
		return err
	}
	if err := h.eventually(ctx, func() error { return s.Check(ctx, h.client, status) }); err != nil {
		return err
	}
	if s.CheckWithoutFaults != nil {
		if err := h.eventually(ctx, func() error { return s.CheckWithoutFaults(ctx, h.client, status) }); err != nil {
			return err
		}
	}
	return h.checkHistory(ctx, status.InstanceID)
}

// eventually repeats a check for some seconds, until the effects of an instance's end are visible.
func (h *hub) eventually(ctx context.Context, check func() error) (err error) {
	const repetitions, pause = 50, 200 * time.Millisecond
	for range repetitions {
		if err = check(); err == nil {
			return nil
		}
		if late := h.sleep(ctx, pause); late != nil {
			return errors.Join(err, late)
		}
	}
	return err
}

// checkHistory checks that the events of a history are consistent, and that each task has at most one outcome.
func (h *hub) checkHistory(ctx context.Context, id string) error {
	var events []history.Event
	settled, requested := map[int64]bool{}, map[int64]bool{}
	for e, err := range h.client.History(ctx, id) {
		if errors.Is(err, client.ErrNotFound) { // the scenario purged it
			return nil
		}
		if err != nil {
			return err
		}
		events = append(events, e)
		if !e.Kind.HasSource() {
			continue
		}
		by := settled
		if e.Kind == history.ActivityCancelRequested || e.Kind == history.SubOrchestrationCancelRequested {
			by = requested
		}
		for _, source := range e.Sources() {
			if by[source] {
				return fmt.Errorf("history of %s: event %d is settled twice", id, source)
			}
			by[source] = true
		}
	}
	if _, err := history.Concat(events); err != nil {
		return fmt.Errorf("history of %s: %w", id, err)
	}
	return nil
}
