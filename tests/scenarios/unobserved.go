package scenarios

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// unobserved are futures that nobody waits for. What ran is counted in memory: where functions are other processes,
// none is seen.
func unobserved(tick time.Duration) []Scenario {
	var ran atomic.Int64
	return []Scenario{
		{
			Name: "UnobservedFuturesOfTheLastTurn", Input: tick,
			Register: body(leaves, counts("Unwanted", &ran),
				also("UnwantedChild", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
					return perdure.CallActivityByName[int](ctx, "Unwanted", 1).Await(ctx)
				})),
			Check: all(gives("left"), neverRan(&ran)),
		},
		{
			Name: "UnobservedFuturesRunMeanwhile", Register: body(goesOn), Input: tick,
			Check: all(gives("went on"), hasEvent(history.ActivityCompleted)),
		},
	}
}

func counts(name string, n *atomic.Int64) func(r *perdure.Registry) {
	return func(r *perdure.Registry) {
		perdure.AddActivity(r, name, func(context.Context, int) (int, error) { return int(n.Add(1)), nil })
	}
}

// leaves asks for things in the turn that it ends in: they are not begun.
//
//perdure:ignore unawaited what becomes of it is what the scenario shows
func leaves(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	perdure.CallActivityByName[int](ctx, "Unwanted", 1)
	perdure.CallSubOrchestrationByName[int](ctx, "UnwantedChild", 1)
	perdure.CreateTimer(ctx, tick)
	perdure.WaitForExternalEvent[int](ctx, "never")
	return "left", nil
}

// goesOn forgets a future, and waits for something else.
//
//perdure:ignore unawaited what becomes of it is what the scenario shows
func goesOn(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	perdure.CallActivity(ctx, inc, 1)
	return "went on", perdure.Sleep(ctx, 20*tick)
}

// neverRan: no activity of this process counted.
func neverRan(n *atomic.Int64) Check {
	return func(context.Context, *client.Client, client.Status) error {
		if ran := n.Load(); ran != 0 {
			return fmt.Errorf("what nobody waits for ran %d times", ran)
		}
		return nil
	}
}

// hasEvent: there is an event of that kind in history.
func hasEvent(kind history.Kind) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil || e.Kind == kind {
				return err
			}
		}
		return fmt.Errorf("there is no %s in its history", kind)
	}
}
