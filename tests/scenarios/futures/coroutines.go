package futures

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func coroutineScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "CoroutineOrder", Register: kit.Run(resumeOrder), Input: "gate",
			Check: kit.Returns([]int{-1, 0, 1, 2, 10, 11, 12}),
		},
		{Name: "CoroutinesInParallel", Register: kit.Run(finishOrder), Input: tick, Check: kit.Returns([]int{2, 1, 0})},
		{Name: "AsyncValues", Register: kit.Run(asyncValues), Input: 4, Check: kit.Returns("10, and failed with 3")},
	}
}

// resumeOrder checks that coroutines resume in the order in which they became ready.
func resumeOrder(ctx *perdure.OrchestrationContext, gate string) ([]int, error) {
	order := []int{}
	open := perdure.CallActivity(ctx, kit.Echo, gate)
	var all []perdure.Awaitable
	for i := range 3 {
		all = append(all, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			order = append(order, i)
			if _, err := open.Await(ctx); err == nil {
				order = append(order, 10+i)
			}
		}))
	}
	order = append(order, -1) // a coroutine starts when its caller waits
	err := perdure.WhenAll(ctx, all...)
	return order, err
}

// finishOrder runs three coroutines. The last one is the fastest.
func finishOrder(ctx *perdure.OrchestrationContext, tick time.Duration) ([]int, error) {
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

var errAsync = errors.New("failed")

// asyncValues returns values and an error from coroutines.
func asyncValues(ctx *perdure.OrchestrationContext, n int) (string, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
			return perdure.CallActivity(ctx, kit.Inc, i).Await(ctx)
		}))
	}
	bad := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		if err := perdure.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
		return 3, fmt.Errorf("%w with %d", errAsync, 3)
	})
	sum, err := kit.SumOf(ctx, fs)
	if err != nil {
		return "", err
	}
	if _, err = bad.Await(ctx); !errors.Is(err, errAsync) { // the same value: it stays in memory
		return "", fmt.Errorf("not the coroutine's own error: %w", err)
	}
	return fmt.Sprintf("%d, and %v", sum, err), nil
}
