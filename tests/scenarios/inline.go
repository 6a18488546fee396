package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
)

// inlined are activities that run in the turn that decides them.
func inlined(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "InlineChain", Register: body(inlineChain), Input: 5, Check: gives(5)},
		{Name: "InlineFan", Register: body(inlineFan), Input: 12, Check: gives(78)},
		{Name: "InlineBetweenOthers", Register: body(inlineMixed), Input: 4, Check: gives(4)},
		{
			Name: "InlineCompensated", Register: body(inlineTrip), Input: []string{"train", "umbrella", soldOut},
			Check: gives([]string{
				"reserved train", "reserved umbrella", "sold out", "gave back umbrella", "gave back train",
			}),
		},
		{Name: "InlineRetried", Register: body(inlineTries), Input: 3, Check: gives(3)},
		{Name: "InlineFails", Register: body(inlineExplodes), Input: 0, Check: gives("panic")},
		{Name: "InlineRace", Register: body(inlineRace), Input: tick, Check: gives("the quick one")},
		{Name: "InlineThatOverruns", Register: body(inlineNap), Input: 6 * tick, Check: gives("rested")},
		{
			Name: "InlineContinuesAsNew", Register: body(inlineContinues), Input: 3,
			Check: all(gives("done"), executions(4)),
		},
	}
}

func inlineChain(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
	for range n {
		if v, err = perdure.CallActivity(ctx, inc, v, perdure.Inline()).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

func inlineFan(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, inc, i, perdure.Inline()))
	}
	return total(ctx, fs)
}

// inlineMixed has every other activity go through a queue.
func inlineMixed(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
	for i := range n {
		var opts []perdure.ActivityCallOption
		if i%2 == 0 {
			opts = append(opts, perdure.Inline())
		}
		if v, err = perdure.CallActivity(ctx, inc, v, opts...).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// inlineTrip is trip, with activities that are inline both ways.
func inlineTrip(ctx *perdure.OrchestrationContext, items []string) (log []string, err error) {
	var reserved []string
	for _, item := range items {
		done, err := perdure.CallActivity(ctx, reserve, item, perdure.Inline()).Await(ctx)
		if err != nil {
			log = append(log, "sold out")
			break
		}
		reserved, log = append(reserved, item), append(log, done)
	}
	for _, item := range slices.Backward(reserved) {
		done, err := perdure.CallActivity(ctx, undo, item, perdure.Inline()).Await(ctx)
		if err != nil {
			return log, err
		}
		log = append(log, done)
	}
	return log, nil
}

// inlineTries has attempts that follow each other at once.
func inlineTries(ctx *perdure.OrchestrationContext, n int) (int, error) {
	policy := perdure.RetryPolicy{MaxAttempts: n, InitialInterval: 10 * time.Millisecond}
	return perdure.CallActivity(ctx, flaky, n, perdure.Inline(), perdure.WithRetry(policy)).Await(ctx)
}

func inlineExplodes(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	_, err := perdure.CallActivity(ctx, explode, "", perdure.Inline()).Await(ctx)
	return typeOf(err), nil
}

// inlineRace has a quick one and one that takes long: that one is cancelled.
func inlineRace(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	slow := perdure.CallActivity(ctx, nap, 60*tick, perdure.Inline())
	quick := perdure.CallActivity(ctx, nap, 0, perdure.Inline())
	first, err := perdure.Select(ctx, slow, quick)
	if err != nil || first == 0 {
		return "the slow one", err
	}
	if _, err := slow.Await(ctx); err == nil {
		return "", fmt.Errorf("a nap of %v was not cancelled", 60*tick)
	}
	return "the quick one", nil
}

// inlineNap takes longer than an inline activity may, where a tick is a second or more.
func inlineNap(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	return perdure.CallActivity(ctx, nap, d, perdure.Inline()).Await(ctx)
}

func inlineContinues(ctx *perdure.OrchestrationContext, n int) (string, error) {
	if _, err := perdure.CallActivity(ctx, inc, n, perdure.Inline()).Await(ctx); err != nil || n == 0 {
		return "done", err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}
