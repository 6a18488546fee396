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

// MaxConcurrent limits how many items of a Map are worked on at once; without it all are. Numbers below one count as one.
func MaxConcurrent(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.concurrent = max(n, 1) })
}

// Enough ends a Map without an error as soon as n items have succeeded, and with one as soon as that cannot be any more. Numbers
// below one count as one, and those above the number of items as that.
func Enough(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.enough = max(n, 1) })
}

// TooManyFailed ends a Map with an error as soon as n items have failed; fewer are no error of the Map. Numbers below one count as one:
// the first failure ends it.
func TooManyFailed(n int) MapOption {
	return mapOption(func(p *mapPolicy) { p.tooMany = max(n, 1) })
}

// MapResult is what became of one item of a Map: its value or its error.
type MapResult[T any] struct {
	Value T
	// Err is what the function returned. For an item that was not begun when the Map ended it is a *CancelledError with the reason
	// ReasonSelectLoser, or the error of the Map's scope where that was cancelled.
	Err error
}

// MapResults are the results of a Map, in the order of its items.
type MapResults[T any] []MapResult[T]

// Values are those of the items that succeeded, in their order.
func (rs MapResults[T]) Values() []T {
	values := make([]T, 0, len(rs))
	for _, r := range rs {
		if r.Err == nil {
			values = append(values, r.Value)
		}
	}
	return values
}

// Map calls fn for each item, in a coroutine and a scope of its own, and returns when no call is under way any more: what became of each item,
// also with an error. What fn leaves outstanding is cancelled when it returns. A ContinueAsNew that fn asks for is an error of its item, and
// continues the instance if the body returns it.
//
// By itself it runs all items at once and to their ends, and its error joins theirs, in the order of the items. [MaxConcurrent] bounds how
// many run side by side, [Enough] and [TooManyFailed] say when the rest is not wanted: what then runs is cancelled with the reason
// ReasonSelectLoser, what has not begun does not begin, and the error joins those of the items that had failed by then. When the scope of
// ctx is cancelled the error is ctx.Err.
//
// Items are begun in their order. A coroutine takes some 6 KB of memory while its item is under way: for 100,000 items give a limit, or call
// activities and wait for their futures with [Values].
func Map[In, Out any](ctx *OrchestrationContext, items []In, fn func(*OrchestrationContext, In) (Out, error), opts ...MapOption) (MapResults[Out], error) {
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

func newMapping[In, Out any](ctx *OrchestrationContext, items []In, fn func(*OrchestrationContext, In) (Out, error), opts []MapOption) *mapping[In, Out] {
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
		own.replay.End(string(ReasonDroppedFuture))
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
	m.scope.replay.End(string(ReasonDroppedFuture))
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
