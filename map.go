package perdure

import (
	"cmp"
	"errors"
	"slices"
)

// MapOption is an option of Map.
type MapOption interface{ applyToMap(p *mapPolicy) }

// mapPolicy says how Map works, 0 being no limit.
type mapPolicy struct{ concurrent, enough, tooMany int }

type mapOption func(p *mapPolicy)

func (o mapOption) applyToMap(p *mapPolicy) { o(p) }

// MaxConcurrency limits how many items a Map processes at a time. The default is all. Values below 1 count as 1.
func MaxConcurrency(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.concurrent = max(n, 1) })
}

// MinSuccessful ends a Map successfully as soon as n items have succeeded, and with an error as soon as n successes are
// no longer possible. Values below 1 count as 1, and values above the number of items as that number.
func MinSuccessful(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.enough = max(n, 1) })
}

// ToleratedFailures ends a Map with an error as soon as more than n items have failed. Up to n failures are not an
// error of the Map. With 0, the first failure ends the Map. Values below 0 count as 0.
func ToleratedFailures(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.tooMany = max(n, 0) + 1 })
}

// MapResult is the result of one item of a Map: a value or an error.
type MapResult[T any] struct {
	Value T
	// Err is the error that the function returned. If the item had not started when the Map ended, Err is a
	// *CancelledError with the reason ReasonSelectLoser, or the error of the Map's scope if it was cancelled.
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

// Map calls fn for each item, in its own coroutine and scope, and returns the results when no call is running anymore.
// It returns results even with an error. When fn returns, its outstanding work is cancelled. If fn returns the error of
// ContinueAsNew, it is the error of the item, and the instance continues as new only if the orchestration returns it.
//
// By default, Map processes all items concurrently and to the end, and its error joins the errors of the items in their
// order. Use [MaxConcurrency] to limit concurrency, and [MinSuccessful] or [ToleratedFailures] to stop early. When Map
// stops early, it cancels running items with the reason ReasonSelectLoser and does not start the others. Its error then
// joins the errors of the items that had failed before. If the scope of ctx is cancelled, the error is ctx.Err.
//
// Items start in order. A running item needs about 6 KB of memory. For 100,000 items use MaxConcurrency, or call
// activities and wait for their futures with [AwaitAll].
func Map[In, Out any](
	ctx *OrchestrationContext, items []In, fn func(*OrchestrationContext, In) (Out, error), opts ...MapOption,
) (MapResults[Out], error) {
	m := newMapping(ctx, items, fn, opts)
	workers := make([]Awaitable, min(m.policy.concurrent, len(items)))
	for i := range workers {
		workers[i] = Go(ctx, m.work)
	}
	// Cancelled items end by themselves, once they have cleaned up.
	if err := WhenAll(WithoutCancel(ctx), workers...); err != nil {
		return m.results, err
	}

	m.giveUpTheRest()
	if err := ctx.Err(); err != nil {
		return m.results, err
	}
	return m.results, m.verdict()
}

// mapping is one Map under way.
type mapping[In, Out any] struct {
	policy    mapPolicy
	scope     *OrchestrationContext // of the items
	items     []In
	fn        func(*OrchestrationContext, In) (Out, error)
	results   MapResults[Out]
	begun     int
	succeeded int
	failures  []itemFailure // before the rest was cancelled
}

type itemFailure struct {
	item int
	err  error
}

func newMapping[In, Out any](
	ctx *OrchestrationContext, items []In, fn func(*OrchestrationContext, In) (Out, error), opts []MapOption,
) *mapping[In, Out] {
	m := &mapping[In, Out]{items: items, fn: fn, results: make(MapResults[Out], len(items))}
	m.policy.concurrent = len(items)
	for _, opt := range opts {
		opt.applyToMap(&m.policy)
	}
	m.policy.enough = min(m.policy.enough, len(items))
	m.scope = ctx.with(ctx.replay.WithCancel())
	return m
}

// work takes one item after the other until none is left, or wanted.
func (m *mapping[In, Out]) work(*OrchestrationContext) {
	for m.begun < len(m.items) && m.scope.Err() == nil {
		item := m.begun
		m.begun++
		own := m.scope.with(m.scope.replay.WithCancel())
		value, err := m.fn(own, m.items[item])
		own.replay.End(string(ReasonScopeEnded))
		m.settle(item, value, err)
	}
}

// settle notes what became of an item, and cancels the others if that decides the Map.
func (m *mapping[In, Out]) settle(item int, value Out, err error) {
	m.results[item] = MapResult[Out]{value, err}
	if m.scope.Err() != nil {
		return
	}

	if err == nil {
		m.succeeded++
	} else {
		m.failures = append(m.failures, itemFailure{item, err})
	}
	if m.decided() {
		m.scope.replay.End(string(ReasonSelectLoser))
	}
}

// decided reports whether nothing that the other items come to can change the verdict.
func (m *mapping[In, Out]) decided() bool {
	p := m.policy
	return p.enough > 0 && (m.succeeded >= p.enough || len(m.failures) > len(m.items)-p.enough) ||
		p.tooMany > 0 && len(m.failures) >= p.tooMany
}

// giveUpTheRest gives the items that were not begun the error of the scope, which has ended then.
func (m *mapping[In, Out]) giveUpTheRest() {
	for i := m.begun; i < len(m.items); i++ {
		m.results[i].Err = m.scope.Err()
	}
	m.scope.replay.End(string(ReasonScopeEnded))
}

// verdict is the Map's error.
func (m *mapping[In, Out]) verdict() error {
	p := m.policy
	tolerated := 0
	if p.tooMany > 0 {
		tolerated = p.tooMany - 1
	}
	if p.enough > 0 && m.succeeded >= p.enough || p.enough == 0 && len(m.failures) <= tolerated {
		return nil
	}

	slices.SortFunc(m.failures, func(a, b itemFailure) int { return cmp.Compare(a.item, b.item) })
	errs := make([]error, len(m.failures))
	for i, f := range m.failures {
		errs[i] = f.err
	}
	return errors.Join(errs...)
}
