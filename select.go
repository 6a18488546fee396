package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/replay"
)

var errNoFutures = errors.New("perdure: no futures to wait for")

// WhenAny waits until one of the futures has settled, and returns the index of the first argument that has settled. The
// other futures are not affected. The error is never the error of a future. WhenAny returns -1 and an error without
// futures, or -1 and ctx.Err if the scope of ctx is cancelled.
func WhenAny(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	_, winner, err := awaitAny(ctx, fs)
	return winner, err
}

// Select is like WhenAny, and cancels the other futures with the reason ReasonSelectLoser, in the order of the
// arguments. Their futures settle with a *CancelledError; Select does not wait for them. A loser that has already
// settled does not change, but its external event returns to the head of its queue. If the scope of ctx is cancelled,
// no future wins, and futures of other scopes are not affected.
func Select(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	ts, winner, err := awaitAny(ctx, fs)
	if err == nil { // the winner has settled, so Cancel does not change it
		ctx.replay.Cancel(string(ReasonSelectLoser), "", ts...)
	}
	return winner, err
}

func awaitAny(ctx *OrchestrationContext, fs []Awaitable) (ts []*replay.Task, winner int, err error) {
	if len(fs) == 0 {
		return nil, -1, errNoFutures
	}
	ts = tasks(fs)
	if winner = ctx.replay.AwaitAny(ts); winner < 0 {
		return nil, -1, ctx.Err()
	}
	return ts, winner, nil
}

// WhenAll waits until all futures have settled. Its error joins their errors in the order of the arguments. If the
// scope of ctx is cancelled before, WhenAll returns ctx.Err. External events that have arrived for futures of that
// scope then return to the heads of their queues.
func WhenAll(ctx *OrchestrationContext, fs ...Awaitable) error {
	if c := ctx.replay.AwaitAll(tasks(fs)); c != nil {
		return cancelledError(c)
	}
	return joinErrors(fs)
}

// joinErrors joins the errors of settled futures.
func joinErrors[F Awaitable](fs []F) error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		_, errs[i] = f.outcome()
	}
	return errors.Join(errs...)
}

func tasks[F Awaitable](fs []F) []*replay.Task {
	ts := make([]*replay.Task, len(fs))
	for i, f := range fs {
		ts[i], _ = f.outcome()
	}
	return ts
}

// AwaitAll waits for all futures like WhenAll, and returns their values in order. If a future fails, AwaitAll returns
// no values. To get the values of the other futures, await each future. Use a context of [WithoutCancel] if the scope
// of ctx may be cancelled.
func AwaitAll[T any](ctx *OrchestrationContext, fs []*Future[T]) ([]T, error) {
	if c := ctx.replay.AwaitAll(tasks(fs)); c != nil {
		return nil, cancelledError(c)
	}
	values := make([]T, len(fs))
	for i, f := range fs {
		f.load() // a value that cannot be decoded is an error
		values[i] = f.value
	}
	if err := joinErrors(fs); err != nil {
		return nil, err
	}
	return values, nil
}

// FirstSuccess returns the first value of a future, and cancels the other futures with the reason ReasonSelectLoser,
// like Select. A future that fails is skipped. If all futures fail, the error joins their errors in the order of the
// arguments. FirstSuccess returns an error without futures, and ctx.Err if the scope of ctx is cancelled.
//
// To wait for the first future that settles, with a value or an error, use Select or WhenAny.
func FirstSuccess[T any](ctx *OrchestrationContext, fs []*Future[T]) (T, error) {
	var none T
	if len(fs) == 0 {
		return none, errNoFutures
	}
	ts, futures := tasks(fs), make(map[*replay.Task]*Future[T], len(fs))
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
