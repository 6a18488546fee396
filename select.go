package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/replay"
)

var errNoFutures = errors.New("perdure: nothing to wait for: no futures were given")

// WhenAny waits until one of the futures has settled and returns the index of the first argument that has. The others live
// on. The error is that of the wait, never a future's, and the index is -1 then: without futures there is one, and when the scope of
// ctx is cancelled it is ctx.Err.
func WhenAny(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	if len(fs) == 0 {
		return -1, errNoFutures
	}
	winner := ctx.replay.AwaitAny(tasks(fs))
	if winner < 0 {
		return -1, ctx.Err()
	}
	return winner, nil
}

// Select is WhenAny, and cancels the losers with the reason ReasonSelectLoser, in the order of the arguments: their futures
// settle with a *CancelledError, which Select does not wait for. A loser that has settled as well is left alone, but for an external event, which goes back to the
// head of its queue. When the scope of ctx is cancelled no future has won, and futures of other scopes are left alone.
func Select(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	if len(fs) == 0 {
		return -1, errNoFutures
	}
	ts := tasks(fs)
	winner := ctx.replay.AwaitAny(ts)
	if winner < 0 {
		return -1, ctx.Err()
	}
	ctx.replay.Cancel(string(ReasonSelectLoser), "", ts...) // the winner is done and known to the code, which no cancel changes
	return winner, nil
}

// WhenAll waits until all futures have settled. Its error joins theirs, in the order of the arguments; it is ctx.Err alone when the
// scope of ctx is cancelled before that: then external events that have come for some of the futures go back to the heads of their queues,
// as far as the futures are of that scope.
func WhenAll(ctx *OrchestrationContext, fs ...Awaitable) error {
	if c := ctx.replay.AwaitAll(tasks(fs)); c != nil {
		return cancelledError(c)
	}
	errs := make([]error, len(fs))
	for i, f := range fs {
		_, errs[i] = f.outcome()
	}
	return errors.Join(errs...)
}

func tasks(fs []Awaitable) []*replay.Task {
	ts := make([]*replay.Task, len(fs))
	for i, f := range fs {
		ts[i], _ = f.outcome()
	}
	return ts
}
