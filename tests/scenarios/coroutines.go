package scenarios

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

func coroutines(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "CoroutineOrder", Register: body(branches), Input: "gate", Check: gives([]int{-1, 0, 1, 2, 10, 11, 12})},
		{Name: "CoroutinesSideBySide", Register: body(sideBySide), Input: tick, Check: gives([]int{2, 1, 0})},
		{Name: "AsyncValues", Register: body(asyncValues), Input: 4, Check: gives("10, and no luck with 3")},
	}
}

// branches go on in the order in which they became able to.
func branches(ctx *perdure.OrchestrationContext, gate string) ([]int, error) {
	order := []int{}
	open := perdure.CallActivity(ctx, echo, gate)
	var all []perdure.Awaitable
	for i := range 3 {
		all = append(all, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			order = append(order, i)
			if _, err := open.Await(ctx); err == nil {
				order = append(order, 10+i)
			}
		}))
	}
	order = append(order, -1) // before any of them: a coroutine first runs when its caller waits
	err := perdure.WhenAll(ctx, all...)
	return order, err
}

// sideBySide has three coroutines, of which the last is the quickest.
func sideBySide(ctx *perdure.OrchestrationContext, tick time.Duration) ([]int, error) {
	order := []int{}
	var all []perdure.Awaitable
	for i := range 3 {
		all = append(all, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			for range 2 {
				if perdure.Sleep(ctx, time.Duration(3-i)*4*tick) != nil {
					return
				}
			}
			order = append(order, i)
		}))
	}
	err := perdure.WhenAll(ctx, all...)
	return order, err
}

var errNoLuck = errors.New("no luck")

// asyncValues brings values and an error out of coroutines.
func asyncValues(ctx *perdure.OrchestrationContext, n int) (string, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
			return perdure.CallActivity(ctx, inc, i).Await(ctx)
		}))
	}
	bad := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		if err := perdure.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
		return 3, fmt.Errorf("%w with %d", errNoLuck, 3)
	})
	sum, err := total(ctx, fs)
	if err != nil {
		return "", err
	}
	if _, err = bad.Await(ctx); !errors.Is(err, errNoLuck) { // it stays in memory, and is the very error
		return "", fmt.Errorf("not the coroutine's own error: %w", err)
	}
	return fmt.Sprintf("%d, and %v", sum, err), nil
}
