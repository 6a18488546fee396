package admin_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// kinds maps the name of each orchestration to its input.
var kinds = map[string]any{
	"chain": 4, "near": 10 * time.Minute, "far": 3 * time.Hour, "event": 0, "event-early": 0, "parent": 3,
	"leaves": 20 * time.Minute, "eternal": 6,
	"flaky": 10 * time.Minute, "flaky-far": 40 * time.Minute, "fan": 12, "saga": 0, "saga-cancelled": 0,
	"closes": 50 * time.Minute, "delayed": 1,
	"blocked": 0, "terminated": 0, "detaches": 2, "over": 0, "purged": 0,
}

func (h *lost) registry(fixed bool) *perdure.Registry {
	r := perdure.NewRegistry()
	inc := func(ctx context.Context, n int) (int, error) {
		h.ran(ctx)
		time.Sleep(time.Duration(n%5+1) * 11 * time.Second)
		return n + 1, ctx.Err()
	}
	perdure.AddActivity(r, "inc", inc)
	perdure.AddActivity(r, "slow", func(ctx context.Context, _ int) (int, error) {
		h.ran(ctx)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(8 * time.Minute):
			return 1, nil
		}
	})
	perdure.AddActivity(r, "flaky", func(ctx context.Context, succeedsAt int) (int, error) {
		h.ran(ctx)
		if perdure.ActivityInfoFrom(ctx).Attempt < succeedsAt {
			return 0, errors.New("not yet")
		}
		return 1, nil
	})
	add := func(name string, f func(ctx *perdure.OrchestrationContext, n int) (int, error)) {
		perdure.AddOrchestration(r, name, f)
	}
	chain := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = perdure.CallActivityByName[int](ctx, "inc", v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return 1, nil
	}
	timer := func(ctx *perdure.OrchestrationContext, d int) (int, error) {
		return 1, perdure.Sleep(ctx, time.Duration(d))
	}
	event := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
	}
	retried := func(attempts int, opts ...perdure.ActivityCallOption) func(
		ctx *perdure.OrchestrationContext, wait int,
	) (int, error) {
		return func(ctx *perdure.OrchestrationContext, wait int) (int, error) {
			policy := perdure.RetryPolicy{InitialInterval: time.Duration(wait), BackoffCoefficient: 1, MaxAttempts: 4}
			return perdure.CallActivityByName[int](ctx, "flaky", attempts,
				append(opts, perdure.WithRetry(policy))...).Await(ctx)
		}
	}
	saga := func(ctx *perdure.OrchestrationContext, _ int) (n int, err error) {
		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "inc", 1).Await(ctx)
			return err
		})
		return perdure.CallActivityByName[int](ctx, "slow", 1, perdure.WaitForCancellation()).Await(ctx)
	}

	for _, name := range []string{"chain", "over", "purged", "delayed", "terminated"} {
		add(name, chain)
	}
	for _, name := range []string{"near", "far"} {
		add(name, timer)
	}
	for _, name := range []string{"event", "event-early", "forever"} {
		add(name, event)
	}
	add("parent", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallSubOrchestrationByName[int](ctx, "chain", n).Await(ctx)
	})
	add("leaves", func(ctx *perdure.OrchestrationContext, d int) (int, error) {
		_ = perdure.CallSubOrchestrationByName[int](ctx, "forever", 0,
			perdure.WithInstanceID("left-by-"+ctx.InstanceID()))
		return 1, perdure.Sleep(ctx, time.Duration(d))
	})
	add("eternal", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.StartOrchestration(ctx, "chain", 1,
			perdure.WithInstanceID(fmt.Sprintf("loose-%d-of-%s", n, ctx.InstanceID()))); err != nil {
			return 0, err
		}
		if _, err := perdure.CallActivityByName[int](ctx, "inc", n).Await(ctx); err != nil || n == 0 {
			return 1, err
		}
		return perdure.ContinueAsNew[int](ctx, n-1)
	})
	add("detaches", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.CallActivityByName[int](ctx, "inc", n).Await(ctx); err != nil {
			return 0, err
		}
		_, err := perdure.StartOrchestration(ctx, "chain", n, perdure.WithInstanceID("loose-of-"+ctx.InstanceID()))
		return 1, err
	})
	add("flaky", retried(3))
	add("flaky-far", retried(3))
	closes := retried(99, perdure.WithScheduleToCloseTimeout(45*time.Minute))
	add("closes", func(ctx *perdure.OrchestrationContext, wait int) (int, error) {
		_, err := closes(ctx, wait/5)
		if err == nil {
			return 0, errors.New("it succeeded")
		}
		return 1, nil
	})
	fan := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var all []*perdure.Future[int]
		for i := range n {
			all = append(all, perdure.CallActivityByName[int](ctx, "inc", i))
		}
		return 1, perdure.WhenAll(ctx, perdure.Awaitables(all)...)
	}
	add("fan", fan)
	add("saga", saga)
	add("saga-cancelled", saga)
	add("blocked", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallSubOrchestrationByName[int](ctx, "later", n).Await(ctx)
	})
	if fixed {
		add("later", func(_ *perdure.OrchestrationContext, _ int) (int, error) { return 1, nil })
	}
	return r
}
