package scenarios

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

func polling(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "ConditionMet", Register: body(pollsCounting), Input: Polls{3, 5, tick, false},
			Check: gives("3, <nil>"),
		},
		{
			Name: "ConditionMetInline", Register: body(pollsCounting), Input: Polls{3, 5, tick, true},
			Check: gives("3, <nil>"),
		},
		{
			Name: "ConditionNotMet", Register: body(pollsCounting), Input: Polls{9, 3, tick, false},
			Check: gives("3, the condition is not met after 3 checks, 3 the last"),
		},
		{Name: "ConditionThatFails", Register: body(pollsReserving), Input: tick, Check: gives("book, StockError")},
	}
}

// Polls is at which count a condition is met, how many checks there may be, and how far apart.
type Polls struct {
	Until, Most int
	Interval    time.Duration
	Inline      bool
}

// pollsCounting counts by an activity.
func pollsCounting(ctx *perdure.OrchestrationContext, p Polls) (string, error) {
	var opts []perdure.ActivityCallOption
	if p.Inline {
		opts = append(opts, perdure.Inline())
	}
	n, err := perdure.WaitForCondition(ctx, 0, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivity(ctx, inc, n, opts...).Await(ctx)
	}, func(n int) bool {
		return n >= p.Until
	}, perdure.PollPolicy{MaxAttempts: p.Most, InitialInterval: p.Interval, BackoffCoefficient: 1.5, Jitter: 0.5})
	if failed, ok := errors.AsType[*perdure.ConditionNotMetError](err); ok {
		return fmt.Sprintf("%d, the condition is not met after %d checks, %v the last", n, failed.Attempts,
			failed.State), nil
	}
	return fmt.Sprintf("%d, %v", n, err), nil
}

// pollsReserving reserves until there is nothing in stock.
func pollsReserving(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	item, err := perdure.WaitForCondition(ctx, "pen",
		func(ctx *perdure.OrchestrationContext, item string) (string, error) {
			next := map[string]string{"pen": "book", "book": soldOut}[item]
			_, err := perdure.CallActivity(ctx, reserve, next).Await(ctx)
			return next, err
		}, func(string) bool { return false }, perdure.PollPolicy{InitialInterval: tick})
	failed, ok := errors.AsType[*perdure.ActivityError](err)
	if !ok {
		return "", err
	}
	return item + ", " + failed.Type, nil
}
