package activities

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// inlineScenarios have activities that run inside a turn.
func inlineScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{Name: "InlineChain", Register: kit.Run(kit.Chain(perdure.Inline())), Input: 5, Check: kit.Returns(5)},
		{Name: "InlineFan", Register: kit.Run(kit.FanOut(perdure.Inline())), Input: 12, Check: kit.Returns(78)},
		{Name: "InlineBetweenOthers", Register: kit.Run(inlineMixed), Input: 4, Check: kit.Returns(4)},
		{Name: "InlineRetried", Register: kit.Run(inlineRetry), Input: 3, Check: kit.Returns(3)},
		{Name: "InlineFails", Register: kit.Run(inlinePanic), Input: 0, Check: kit.Returns("panic")},
		{Name: "InlineRace", Register: kit.Run(inlineRace), Input: tick, Check: kit.Returns("the quick one")},
		{Name: "InlineThatOverruns", Register: kit.Run(inlineNap), Input: 6 * tick, Check: kit.Returns("rested")},
		{
			Name: "InlineContinuesAsNew", Register: kit.Run(inlineContinueAsNew), Input: 3,
			Check: kit.All(kit.Returns("done"), kit.Executions(4)),
		},
	}
}

// inlineMixed runs every other activity inline.
func inlineMixed(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
	for i := range n {
		var opts []perdure.ActivityCallOption
		if i%2 == 0 {
			opts = append(opts, perdure.Inline())
		}
		if v, err = perdure.CallActivity(ctx, kit.Inc, v, opts...).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// inlineRetry retries without leaving the turn.
func inlineRetry(ctx *perdure.OrchestrationContext, n int) (int, error) {
	policy := perdure.RetryPolicy{MaxAttempts: n, InitialInterval: 10 * time.Millisecond}
	return perdure.CallActivity(ctx, kit.Flaky, n, perdure.Inline(), perdure.WithRetry(policy)).Await(ctx)
}

func inlinePanic(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	_, err := perdure.CallActivity(ctx, kit.Explode, "", perdure.Inline()).Await(ctx)
	return kit.FailureType(err), nil
}

// inlineRace runs a fast and a slow activity. The slow one is cancelled.
func inlineRace(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	slow := perdure.CallActivity(ctx, kit.Nap, 60*tick, perdure.Inline())
	quick := perdure.CallActivity(ctx, kit.Nap, 0, perdure.Inline())
	first, err := perdure.Select(ctx, slow, quick)
	if err != nil || first == 0 {
		return "the slow one", err
	}
	if _, err := slow.Await(ctx); err == nil {
		return "", fmt.Errorf("a nap of %v was not cancelled", 60*tick)
	}
	return "the quick one", nil
}

// inlineNap exceeds the time limit of inline activities if a tick is at least a second.
func inlineNap(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	return perdure.CallActivity(ctx, kit.Nap, d, perdure.Inline()).Await(ctx)
}

func inlineContinueAsNew(ctx *perdure.OrchestrationContext, n int) (string, error) {
	if _, err := perdure.CallActivity(ctx, kit.Inc, n, perdure.Inline()).Await(ctx); err != nil || n == 0 {
		return "done", err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}
