package scenarios

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

func combinators(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "WhenAny", Register: body(firstOfThree), Input: tick, Check: gives([]int{2, 1, 0})},
		{
			Name: "WhenAll", Register: body(allOf), Input: []string{"hotel", soldOut, "flight", soldOut},
			Check: gives("2 reserved, 2 errors: StockError, StockError"),
		},
		{
			Name: "Select", Register: body(selects), Input: tick,
			Check: gives("1 first, 2 lost: select_loser, select_loser"),
		},
		{
			Name: "NothingToWaitFor", Register: body(nothing), Input: 0,
			Check: gives("at once; perdure: no futures to wait for"),
		},
	}
}

// firstOfThree says in which order timers fire, of which the last is the shortest; what is not first lives on.
func firstOfThree(ctx *perdure.OrchestrationContext, tick time.Duration) (order []int, err error) {
	open := map[int]*perdure.Future[time.Time]{}
	for i := range 3 {
		open[i] = perdure.CreateTimer(ctx, time.Duration(3-i)*6*tick)
	}
	for len(open) > 0 {
		var fs []perdure.Awaitable
		var index []int
		for i := range 3 {
			if f, ok := open[i]; ok {
				fs, index = append(fs, f), append(index, i)
			}
		}
		first, err := perdure.WhenAny(ctx, fs...)
		if err != nil {
			return order, err
		}
		order = append(order, index[first])
		delete(open, index[first])
	}
	return order, nil
}

// allOf waits for all, whatever fails.
func allOf(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	var fs []*perdure.Future[string]
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, reserve, item))
	}
	joined, ok := perdure.WhenAll(ctx, perdure.Awaitables(fs)...).(interface{ Unwrap() []error })
	if !ok {
		return "", fmt.Errorf("%d futures gave no joined error", len(fs))
	}
	errs := joined.Unwrap()
	return fmt.Sprintf("%d reserved, %d errors: %s, %s", len(fs)-len(errs), len(errs), typeOf(errs[0]),
		typeOf(errs[1])), nil
}

// selects lets activities race and gives up the losers.
func selects(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	// Slow is what must be tried again: activities of one batch, one of which naps, might be told of together.
	policy := perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: 20 * tick, BackoffCoefficient: 1}
	slow, quick := perdure.CallActivity(ctx, flaky, 9, perdure.WithRetry(policy)), perdure.CallActivity(ctx, inc, 0)
	never := perdure.WaitForExternalEvent[string](ctx, "never")
	first, err := perdure.Select(ctx, slow, quick, never)
	if err != nil {
		return "", err
	}
	_, one := slow.Await(ctx)
	_, other := never.Await(ctx)
	return fmt.Sprintf("%d first, 2 lost: %s, %s", first, reasonOf(one), reasonOf(other)), nil
}

// nothing waits for what settles at once.
func nothing(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	if err := perdure.Sleep(ctx, d); err != nil {
		return "", err
	}
	if err := perdure.WhenAll(ctx); err != nil {
		return "", err
	}
	_, err := perdure.WhenAny(ctx)
	return fmt.Sprintf("at once; %v", err), nil
}
