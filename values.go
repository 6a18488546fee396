package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/replay"
)

// AwaitAll waits for all futures like WhenAll, and returns their values in order. If a future fails, AwaitAll returns no
// values; Await each future to get the others, with a context of [WithoutCancel] if the scope of ctx may be cancelled.
func AwaitAll[T any](ctx *OrchestrationContext, fs []*Future[T]) ([]T, error) {
	if c := ctx.replay.AwaitAll(tasks(Awaitables(fs))); c != nil {
		return nil, cancelledError(c)
	}
	values, errs := make([]T, len(fs)), make([]error, len(fs))
	for i, f := range fs {
		f.load() // a value that cannot be decoded is an error
		values[i], errs[i] = f.value, f.err
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return values, nil
}

// FirstSuccess returns the first value of a future, and cancels the other futures with the reason ReasonSelectLoser,
// like Select. A future that fails is skipped. If all futures fail, the error joins their errors in the order of the
// arguments. FirstSuccess returns an error if there are no futures, and ctx.Err if the scope of ctx is cancelled.
//
// To wait for the first future that settles, with a value or an error, use Select or WhenAny.
func FirstSuccess[T any](ctx *OrchestrationContext, fs []*Future[T]) (T, error) {
	var none T
	if len(fs) == 0 {
		return none, errNoFutures
	}
	ts, futures := tasks(Awaitables(fs)), make(map[*replay.Task]*Future[T], len(fs))
	for i, f := range fs {
		futures[ts[i]] = f
	}
	winner, c := ctx.replay.AwaitWanted(ts, func(t *replay.Task) bool {
		f := futures[t]
		f.load()
		return f.err == nil
	})
	switch {
	case c != nil:
		return none, cancelledError(c)
	case winner == nil:
		return none, joinErrors(fs)
	}

	ctx.replay.Cancel(string(ReasonSelectLoser), "", ts...)
	return futures[winner].value, nil
}
