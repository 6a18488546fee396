package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/replay"
)

// Values is WhenAll, and returns the values of the futures in their order. With an error there are none: Await each of the futures for
// those that are good, through [WithoutCancel] where the scope of ctx may have been cancelled.
func Values[T any](ctx *OrchestrationContext, fs []*Future[T]) ([]T, error) {
	if c := ctx.replay.AwaitAll(tasks(Awaitables(fs))); c != nil {
		return nil, cancelledError(c)
	}
	values, errs := make([]T, len(fs)), make([]error, len(fs))
	for i, f := range fs {
		f.load() // which WhenAll leaves to Await: a value that does not decode is an error here
		values[i], errs[i] = f.value, f.err
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return values, nil
}

// First returns the first value that one of the futures gets, and cancels the others with the reason ReasonSelectLoser, as Select does.
// A future that fails is passed over while others may still have a value; when all have failed the error joins theirs, in the order
// of the arguments. Without futures there is an error, and when the scope of ctx is cancelled it is ctx.Err.
//
// For the first to settle, whatever with, there are Select and WhenAny.
func First[T any](ctx *OrchestrationContext, fs []*Future[T]) (T, error) {
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
		return none, joined(fs)
	}

	ctx.replay.Cancel(string(ReasonSelectLoser), "", ts...)
	return futures[winner].value, nil
}

// joined are the errors of futures that have all failed.
func joined[T any](fs []*Future[T]) error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		_, errs[i] = f.outcome()
	}
	return errors.Join(errs...)
}
