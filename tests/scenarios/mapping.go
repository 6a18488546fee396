package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// mapping has what a body does with many of a kind.
func mapping(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "Values", Register: body(allValues), Input: 4, Check: gives([]int{1, 2, 3, 4})},
		{
			Name: "First", Register: body(firstValue), Input: []string{soldOut, "tent"},
			Check: gives("reserved tent, lost: select_loser"),
		},
		{
			Name: "Fair", Register: body(fairly), Input: []string{"skis", "sled"},
			Check: gives([]string{"reserved skis", "reserved sled"}),
		},
		{
			Name: "AtMostOnce", Register: body(onceEach), Input: []string{"skates", "kite", soldOut},
			Check: gives("reserved skates, reserved kite, StockError"),
		},
		{
			Name: "Exclusive", Register: body(oneByOne), Input: []string{"skis", "sled", soldOut},
			Check: gives("[reserved skis reserved sled], StockError"),
		},
		{
			Name: "Map", Register: body(reserveAll), Input: []string{"tent", soldOut, "boat"},
			Check: gives("[reserved tent reserved boat], StockError"),
		},
		{Name: "MapFew", Register: body(fewAtOnce), Input: tick, Check: gives("2 at once, [1 2 3 4 5]")},
		{
			Name: "MapEnough", Register: body(enoughOf), Input: tick,
			Check: gives("[rested 3], lost: select_loser, select_loser; then [2 of 3], StockError"),
		},
	}
}

// allValues waits for all futures of one kind.
func allValues(ctx *perdure.OrchestrationContext, n int) ([]int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, inc, i))
	}
	return perdure.AwaitAll(ctx, fs)
}

// firstValue takes what it gets, of what is to be had.
func firstValue(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	never := perdure.WaitForExternalEvent[string](ctx, "never")
	fs := []*perdure.Future[string]{never}
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, reserve, item))
	}
	got, err := perdure.FirstSuccess(ctx, fs)
	if err != nil {
		return "", err
	}
	_, lost := never.Await(ctx)
	return fmt.Sprintf("%s, lost: %s", got, reasonOf(lost)), nil
}

// reserveAll says what became of each item.
func reserveAll(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	results, err := perdure.Map(ctx, items, func(ctx *perdure.OrchestrationContext, item string) (string, error) {
		return perdure.CallActivity(ctx, reserve, item).Await(ctx)
	})
	if err == nil {
		return "", errors.New("no item failed")
	}
	return fmt.Sprintf("%v, %s", results.Values(), typeOf(results[1].Err)), nil
}

// fairly reserves items of several, who share the workers.
func fairly(ctx *perdure.OrchestrationContext, items []string) ([]string, error) {
	var fs []*perdure.Future[string]
	for _, item := range items {
		fs = append(fs, perdure.CallActivity(ctx, reserve, item, perdure.WithFairnessKey("whose "+item+"?")))
	}
	return perdure.AwaitAll(ctx, fs)
}

// oneByOne reserves items of one store, which serves one customer at a time.
func oneByOne(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	results, err := perdure.Map(ctx, items, func(ctx *perdure.OrchestrationContext, item string) (string, error) {
		return perdure.CallActivity(ctx, reserve, item, perdure.Exclusive("the store")).Await(ctx)
	})
	if err == nil {
		return "", errors.New("no item failed")
	}
	return fmt.Sprintf("%v, %s", results.Values(), typeOf(results[2].Err)), nil
}

// onceEach reserves items, none twice: what is interrupted is looked for, here by trying again.
func onceEach(ctx *perdure.OrchestrationContext, items []string) (string, error) {
	var said []string
	for _, item := range items {
		got, err := perdure.CallActivity(ctx, reserve, item, perdure.AtMostOnce()).Await(ctx)
		for interrupted := (*perdure.InterruptedError)(nil); errors.As(err, &interrupted); {
			got, err = perdure.CallActivity(ctx, reserve, item, perdure.AtMostOnce()).Await(ctx)
		}
		if err != nil {
			got = typeOf(err)
		}
		said = append(said, got)
	}
	return strings.Join(said, ", "), nil
}

// fewAtOnce counts the items that are under way.
func fewAtOnce(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	now, most := 0, 0
	results, err := perdure.Map(ctx, []int{0, 1, 2, 3, 4}, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		now++
		defer func() { now-- }()
		most = max(most, now)
		if err := perdure.Sleep(ctx, time.Duration(n%2+1)*tick); err != nil {
			return 0, err
		}
		return perdure.CallActivity(ctx, inc, n).Await(ctx)
	}, perdure.MaxConcurrency(2))
	return fmt.Sprintf("%d at once, %v", most, results.Values()), err
}

// enoughOf gives up what is not wanted any more: what waits, and what runs.
func enoughOf(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
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
	_, err = perdure.Map(ctx, []string{"bike", soldOut, "boat"},
		func(ctx *perdure.OrchestrationContext, item string) (string, error) {
			tried++
			return perdure.CallActivity(ctx, reserve, item).Await(ctx)
		}, perdure.MaxConcurrency(1), perdure.ToleratedFailures(0))
	return fmt.Sprintf("%v, lost: %s, %s; then [%d of 3], %s", rested.Values(), reasonOf(rested[0].Err),
		reasonOf(rested[1].Err), tried, typeOf(err)), nil
}
