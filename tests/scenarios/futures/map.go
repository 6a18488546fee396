package futures

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// mapScenarios process lists.
func mapScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{Name: "Values", Register: kit.Run(awaitAll), Input: 4, Check: kit.Returns([]int{1, 2, 3, 4})},
		{
			Name: "First", Register: kit.Run(firstSuccess), Input: []string{kit.SoldOut, "tent"},
			Check: kit.Returns("reserved tent, lost: select_loser"),
		},
		{
			Name: "Fair", Register: kit.Run(withFairnessKeys), Input: []string{"skis", "sled"},
			Check: kit.Returns([]string{"reserved skis", "reserved sled"}),
		},
		{
			Name: "AtMostOnce", Register: kit.Run(atMostOnce), Input: []string{"skates", "kite", kit.SoldOut},
			Check: kit.Returns("reserved skates, reserved kite, StockError"),
		},
		{
			Name: "Exclusive", Register: kit.Run(reserveAll(perdure.Exclusive("the store"))),
			Input: []string{"skis", "sled", kit.SoldOut},
			Check: kit.Returns("[reserved skis reserved sled], StockError"),
		},
		{
			Name: "Map", Register: kit.Run(reserveAll()), Input: []string{"tent", kit.SoldOut, "boat"},
			Check: kit.Returns("[reserved tent reserved boat], StockError"),
		},
		{
			Name: "MapMaxConcurrency", Register: kit.Run(limitConcurrency), Input: tick,
			Check: kit.Returns("2 at once, [1 2 3 4 5]"),
		},
		{
			Name: "MapMinSuccessful", Register: kit.Run(stopEarly), Input: tick,
			Check: kit.Returns("[rested 3], lost: select_loser, select_loser; then [2 of 3], StockError"),
		},
	}
}

// awaitAll returns the results of all futures.
func awaitAll(ctx *perdure.OrchestrationContext, n int) ([]int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, kit.Inc, i))
	}
	return perdure.AwaitAll(ctx, fs)
}

// firstSuccess returns the first reservation that succeeds.
func firstSuccess(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	never := perdure.WaitForExternalEvent[string](ctx, "never")
	fs := []*perdure.Future[string]{never}
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, kit.Reserve, item))
	}
	got, err := perdure.FirstSuccess(ctx, fs)
	if err != nil {
		return "", err
	}
	_, lost := never.Await(ctx)
	return fmt.Sprintf("%s, lost: %s", got, kit.ReasonOf(lost)), nil
}

// reserveAll reserves the items with Map and returns the reservations and the error of the item that is sold out.
func reserveAll(
	opts ...perdure.ActivityCallOption,
) func(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	return func(ctx *perdure.OrchestrationContext, items []string) (string, error) {
		results, err := perdure.Map(ctx, items, func(ctx *perdure.OrchestrationContext, item string) (string, error) {
			return perdure.CallActivity(ctx, kit.Reserve, item, opts...).Await(ctx)
		})
		if err == nil {
			return "", errors.New("no item failed")
		}
		failed := results[slices.Index(items, kit.SoldOut)].Err
		return fmt.Sprintf("%v, %s", results.Values(), kit.FailureType(failed)), nil
	}
}

// withFairnessKeys reserves items of several tenants.
func withFairnessKeys(ctx *perdure.OrchestrationContext, items []string) ([]string, error) {
	var fs []*perdure.Future[string]
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, kit.Reserve, item, perdure.WithFairnessKey("whose "+item+"?")))
	}
	return perdure.AwaitAll(ctx, fs)
}

// atMostOnce reserves each item at most once per attempt, and calls an interrupted activity again.
func atMostOnce(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	var outcomes []string
	for _, item := range items {
		got, err := perdure.CallActivity(ctx, kit.Reserve, item, perdure.AtMostOnce()).Await(ctx)
		for interrupted := (*perdure.InterruptedError)(nil); errors.As(err, &interrupted); {
			got, err = perdure.CallActivity(ctx, kit.Reserve, item, perdure.AtMostOnce()).Await(ctx)
		}
		if err != nil {
			got = kit.FailureType(err)
		}
		outcomes = append(outcomes, got)
	}
	return strings.Join(outcomes, ", "), nil
}

// limitConcurrency counts the items that Map processes concurrently.
func limitConcurrency(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	now, most := 0, 0
	results, err := perdure.Map(ctx, []int{0, 1, 2, 3, 4}, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		now++
		defer func() { now-- }()
		most = max(most, now)
		if err := perdure.Sleep(ctx, time.Duration(n%2+1)*tick); err != nil {
			return 0, err
		}
		return perdure.CallActivity(ctx, kit.Inc, n).Await(ctx)
	}, perdure.MaxConcurrency(2))
	return fmt.Sprintf("%d at once, %v", most, results.Values()), err
}

// stopEarly ends a Map after one success, and another Map after a failure.
func stopEarly(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	rest := func(ctx *perdure.OrchestrationContext, naps int) (string, error) {
		if err := perdure.Sleep(ctx, time.Duration(13-4*naps)*6*tick); err != nil {
			return "", err
		}
		return fmt.Sprint("rested ", naps), nil
	}
	rested, err := perdure.Map(ctx, []int{1, 2, 3}, rest, perdure.MinSuccessful(1))
	if err != nil {
		return "", err
	}

	tried := 0
	_, err = perdure.Map(ctx, []string{"bike", kit.SoldOut, "boat"},
		func(ctx *perdure.OrchestrationContext, item string) (string, error) {
			tried++
			return perdure.CallActivity(ctx, kit.Reserve, item).Await(ctx)
		}, perdure.MaxConcurrency(1), perdure.ToleratedFailures(0))
	return fmt.Sprintf("%v, lost: %s, %s; then [%d of 3], %s", rested.Values(), kit.ReasonOf(rested[0].Err),
		kit.ReasonOf(rested[1].Err), tried, kit.FailureType(err)), nil
}
