package perdure

import (
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/tally"
)

// MapOption is an option of Map.
type MapOption interface{ applyToMap(p *tally.Policy) }

type mapOption func(p *tally.Policy)

func (set mapOption) applyToMap(p *tally.Policy) { set(p) }

// MaxConcurrency limits the number of items that a Map processes concurrently. By default, a Map processes all items
// concurrently. Values below 1 count as 1.
func MaxConcurrency(n int) MapOption {
	return mapOption(func(p *tally.Policy) { p.Concurrency = max(n, 1) })
}

// MinSuccessful ends a Map successfully as soon as n items have succeeded, and with an error as soon as n successes are
// not possible anymore. Values below 1 count as 1. Values above the number of items count as the number of items.
func MinSuccessful(n int) MapOption {
	return mapOption(func(p *tally.Policy) { p.MinSuccessful = max(n, 1) })
}

// ToleratedFailures ends a Map with an error as soon as more than n items have failed. Up to n failures are not an
// error of the Map. With 0, the first failure ends the Map. Values below 0 count as 0.
func ToleratedFailures(n int) MapOption {
	return mapOption(func(p *tally.Policy) { p.FatalFailures = max(n, 0) + 1 })
}

// MapResult is the result of one item of a Map, which is a value or an error.
type MapResult[T any] struct {
	Value T
	// Err is the error that the function returned. If the item had not started when the Map ended, Err is a
	// *CancelledError. Its reason is ReasonSelectLoser, or the reason of the Map's scope if that scope was cancelled.
	Err error
}

// MapResults are the results of a Map, in the order of its items.
type MapResults[T any] []MapResult[T]

// Values returns the values of the items that succeeded, in the order of the items.
func (rs MapResults[T]) Values() []T {
	values := make([]T, 0, len(rs))
	for _, r := range rs {
		if r.Err == nil {
			values = append(values, r.Value)
		}
	}
	return values
}

// Map calls fn for each item, in its own coroutine and scope, and returns the results when all calls have returned. Map
// also returns the results together with an error. When fn returns, its outstanding work is cancelled. If fn returns
// the error of ContinueAsNew, it is the error of the item, and the instance continues as new only if the orchestration
// returns it.
//
// By default, Map processes all items concurrently and runs each one to its end. Its error joins the errors of the
// items in their order. Use [MaxConcurrency] to limit concurrency, and [MinSuccessful] or [ToleratedFailures] to stop
// early. When Map stops early, it cancels running items with the reason ReasonSelectLoser and does not start the
// others. Its error then joins the errors of the items that had failed before. If the scope of ctx is cancelled, the
// error is ctx.Err.
//
// Items start in order. A running item needs about 6 KB of memory. For 100,000 items use MaxConcurrency, or call
// activities and wait for their futures with [AwaitAll].
func Map[In, Out any](
	ctx *OrchestrationContext, items []In, fn func(*OrchestrationContext, In) (Out, error), opts ...MapOption,
) (MapResults[Out], error) {
	policy := tally.Policy{Concurrency: len(items)}
	for _, opt := range opts {
		opt.applyToMap(&policy)
	}
	results := make(MapResults[Out], len(items))
	started, cancelled, err := tally.Run(ctx.replay, tally.Work{
		Policy: policy, Items: len(items), Ended: string(ReasonScopeEnded), Decided: string(ReasonSelectLoser),
		Process: func(scope *replay.Context, item int) error {
			value, err := fn(ctx.with(scope), items[item])
			results[item] = MapResult[Out]{value, err}
			return err
		},
	})
	for item := started; item < len(items); item++ {
		results[item].Err = cancelledError(cancelled)
	}
	if ended := ctx.Err(); ended != nil {
		return results, ended
	}
	return results, err
}
