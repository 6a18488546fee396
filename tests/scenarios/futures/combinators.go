package futures

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func combinatorScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{Name: "WhenAny", Register: kit.Run(timerOrder), Input: tick, Check: kit.Returns([]int{2, 1, 0})},
		{
			Name: "WhenAll", Register: kit.Run(joinErrors),
			Input: []string{"hotel", kit.SoldOut, "flight", kit.SoldOut},
			Check: kit.Returns("2 reserved, 2 errors: StockError, StockError"),
		},
		{
			Name: "Select", Register: kit.Run(selectFirst), Input: tick,
			Check: kit.Returns("1 first, 2 lost: select_loser, select_loser"),
		},
		{
			Name: "NothingToWaitFor", Register: kit.Run(awaitNothing), Input: 0,
			Check: kit.Returns("at once; perdure: no futures to wait for"),
		},
	}
}

// timerOrder returns the order in which three timers fire. The last timer is the shortest. The other timers still run
// after each WhenAny.
func timerOrder(ctx *perdure.OrchestrationContext, tick time.Duration) (order []int, err error) {
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

// joinErrors waits for all activities. Some of them fail.
func joinErrors(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	var fs []*perdure.Future[string]
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, kit.Reserve, item))
	}
	joined, ok := perdure.WhenAll(ctx, perdure.Awaitables(fs)...).(interface{ Unwrap() []error })
	if !ok {
		return "", fmt.Errorf("%d futures gave no joined error", len(fs))
	}
	errs := joined.Unwrap()
	return fmt.Sprintf("%d reserved, %d errors: %s, %s", len(fs)-len(errs), len(errs), kit.FailureType(errs[0]),
		kit.FailureType(errs[1])), nil
}

// selectFirst lets activities and an event race.
func selectFirst(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	// The slow activity needs retries. Without them, one batch could report the outcomes of both activities.
	policy := perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: 20 * tick, BackoffCoefficient: 1}
	slow := perdure.CallActivity(ctx, kit.Flaky, 9, perdure.WithRetry(policy))
	quick := perdure.CallActivity(ctx, kit.Inc, 0)
	never := perdure.WaitForExternalEvent[string](ctx, "never")
	first, err := perdure.Select(ctx, slow, quick, never)
	if err != nil {
		return "", err
	}
	_, one := slow.Await(ctx)
	_, other := never.Await(ctx)
	return fmt.Sprintf("%d first, 2 lost: %s, %s", first, kit.ReasonOf(one), kit.ReasonOf(other)), nil
}

// awaitNothing waits for futures that settle immediately.
func awaitNothing(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	if err := perdure.Sleep(ctx, d); err != nil {
		return "", err
	}
	if err := perdure.WhenAll(ctx); err != nil {
		return "", err
	}
	_, err := perdure.WhenAny(ctx)
	return fmt.Sprintf("at once; %v", err), nil
}
