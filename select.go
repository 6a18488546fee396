package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/replay"
)

var errNoFutures = errors.New("perdure: nothing to wait for: no futures were given")

// WhenAny waits until one of the futures has settled and returns the index of the first argument that has. The others live
// on. The error is that of the wait, never a future's: without futures there is one, and the index is -1.
func WhenAny(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	if len(fs) == 0 {
		return -1, errNoFutures
	}
	return ctx.replay.AwaitAny(tasks(fs)), nil
}

// Select is WhenAny, and cancels the losers with the reason ReasonSelectLoser, in the order of the arguments: their futures
// settle with a *CancelledError. A loser that has settled as well is left alone, but for an external event, which goes back to the
// head of its queue.
func Select(ctx *OrchestrationContext, fs ...Awaitable) (int, error) {
	if len(fs) == 0 {
		return -1, errNoFutures
	}
	ts := tasks(fs)
	winner := ctx.replay.AwaitAny(ts)
	ctx.replay.Cancel(string(ReasonSelectLoser), "", ts...) // the winner is done and the code told, which no cancel changes
	return winner, nil
}

// WhenAll waits until all futures have settled. Its error joins theirs, in the order of the arguments.
func WhenAll(ctx *OrchestrationContext, fs ...Awaitable) error {
	var errs []error
	for _, f := range fs {
		t, _ := f.outcome()
		ctx.replay.Await(t)
		_, err := f.outcome()
		errs = append(errs, err)
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
