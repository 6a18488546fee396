package activities

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func pollScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "ConditionMet", Register: kit.Run(pollCount), Input: PollInput{3, 5, tick, false},
			Check: kit.Returns("3, <nil>"),
		},
		{
			Name: "ConditionMetInline", Register: kit.Run(pollCount), Input: PollInput{3, 5, tick, true},
			Check: kit.Returns("3, <nil>"),
		},
		{
			Name: "ConditionNotMet", Register: kit.Run(pollCount), Input: PollInput{9, 3, tick, false},
			Check: kit.Returns("3, the condition is not met after 3 checks, 3 the last"),
		},
		{
			Name: "ConditionThatFails", Register: kit.Run(pollReserve), Input: tick,
			Check: kit.Returns("book, StockError"),
		},
	}
}

// PollInput has the count that meets the condition, the maximum number of checks, and the first interval.
type PollInput struct {
	Until, Most int
	Interval    time.Duration
	Inline      bool
}

// pollCount counts with an activity.
func pollCount(ctx *perdure.OrchestrationContext, p PollInput) (string, error) {
	var opts []perdure.ActivityCallOption
	if p.Inline {
		opts = append(opts, perdure.Inline())
	}
	n, err := perdure.WaitForCondition(ctx, 0, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivity(ctx, kit.Inc, n, opts...).Await(ctx)
	}, func(n int) bool {
		return n >= p.Until
	}, perdure.PollPolicy{MaxAttempts: p.Most, InitialInterval: p.Interval, BackoffCoefficient: 1.5, Jitter: 0.5})
	if failed, ok := errors.AsType[*perdure.ConditionNotMetError](err); ok {
		return fmt.Sprintf("%d, the condition is not met after %d checks, %v the last", n, failed.Attempts,
			failed.State), nil
	}
	return fmt.Sprintf("%d, %v", n, err), nil
}

// pollReserve reserves items until one is sold out.
func pollReserve(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	item, err := perdure.WaitForCondition(ctx, "pen",
		func(ctx *perdure.OrchestrationContext, item string) (string, error) {
			next := map[string]string{"pen": "book", "book": kit.SoldOut}[item]
			_, err := perdure.CallActivity(ctx, kit.Reserve, next).Await(ctx)
			return next, err
		}, func(string) bool { return false }, perdure.PollPolicy{InitialInterval: tick})
	failed, ok := errors.AsType[*perdure.ActivityError](err)
	if !ok {
		return "", err
	}
	return item + ", " + failed.Type, nil
}
