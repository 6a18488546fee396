package futures

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// unawaitedScenarios have futures that no code awaits. The counter of executed activities is in memory, so it counts
// nothing if the functions are other processes.
func unawaitedScenarios(tick time.Duration) []kit.Scenario {
	var ran atomic.Int64
	return []kit.Scenario{
		{
			Name: "UnobservedFuturesOfTheLastTurn", Input: tick,
			Register: kit.Run(endWithPending, countingActivity("Unwanted", &ran),
				kit.Also("UnwantedChild", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
					return perdure.CallActivityByName[int](ctx, "Unwanted", 1).Await(ctx)
				})),
			Check: kit.All(kit.Returns("left"), neverRan(&ran)),
		},
		{
			Name: "UnobservedFuturesRunMeanwhile", Register: kit.Run(ignoreFuture), Input: tick,
			Check: kit.All(kit.Returns("continued"), hasEvent(history.ActivityCompleted)),
		},
	}
}

func countingActivity(name string, n *atomic.Int64) func(r *perdure.Registry) {
	return func(r *perdure.Registry) {
		perdure.AddActivity(r, name, func(context.Context, int) (int, error) { return int(n.Add(1)), nil })
	}
}

// endWithPending schedules tasks in its last turn. They do not start.
//
//perdure:ignore unawaited the scenario tests it
func endWithPending(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	perdure.CallActivityByName[int](ctx, "Unwanted", 1)
	perdure.CallSubOrchestrationByName[int](ctx, "UnwantedChild", 1)
	perdure.CreateTimer(ctx, tick)
	perdure.WaitForExternalEvent[int](ctx, "never")
	return "left", nil
}

// ignoreFuture does not await an activity, and sleeps.
//
//perdure:ignore unawaited the scenario tests it
func ignoreFuture(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	perdure.CallActivity(ctx, kit.Inc, 1)
	return "continued", perdure.Sleep(ctx, 20*tick)
}

// neverRan checks that no activity of this process ran.
func neverRan(n *atomic.Int64) kit.Check {
	return func(context.Context, *client.Client, client.Status) error {
		if ran := n.Load(); ran != 0 {
			return fmt.Errorf("unawaited activities ran %d times", ran)
		}
		return nil
	}
}

// hasEvent checks that the history has an event of this kind.
func hasEvent(kind history.Kind) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		found, err := kit.EventsOf(ctx, c, s.InstanceID, kind)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("history has no %s", kind)
		}
		return err
	}
}
