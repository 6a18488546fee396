package perdure

import (
	"errors"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// Compensate undoes what an orchestration has done, should it fail or be cancelled. It is deferred as soon as there is something to undo,
// with the address of the named error that the function returns:
//
//	func Fulfil(ctx *perdure.OrchestrationContext, o Order) (r Receipt, err error) {
//		r, err = perdure.CallActivity(ctx, charge, o, perdure.WaitForCancellation()).Await(ctx)
//		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
//			_, err := perdure.CallActivity(ctx, refund, o.ID).Await(ctx) // nothing, where nothing was charged
//			return err
//		})
//		if err != nil {
//			return r, err
//		}
//		…
//	}
//
// That is before the error of the call is looked at: one that has failed, ran out of time or was cancelled may have done its work, and only
// the answer is lost. So what undoes it goes by what was asked for, which the caller knows, and bears that nothing was done.
//
// As with every defer the last comes first, since what was done later builds on what was done before. undo runs when the function
// returns an error or panics. It does not when the function succeeds, nor when it continues as new: the next execution goes on with what
// was done, unless the instance was cancelled, which refuses the order. Nor does it run when the instance is dropped from memory, is
// terminated or purged.
//
// The context that undo is given is not cancelled when ctx is, or the instance, so that what it waits for is done. What undo fails with is
// joined to the error, and stops no other Compensate.
//
// Of the calls that were made through ctx, or a scope under it, with [WaitForCancellation], none runs any more when undo begins: those
// that are cancelled are waited for until they have really ended, and those that are outstanding, since the function failed beside
// them, are cancelled before (ReasonDroppedFuture). So a charge is not refunded before it is made, and the undo of a parent does not
// overtake that of its child. Of several Compensates the first to undo does all the waiting. The other calls are left as they are. Who
// does one thing that is to be undone beside another gives it a scope of its own ([WithCancel]): else a failure of one cancels the
// calls of both. The context of [WithoutCancel] is no scope of its own: through that nothing is cancelled, and what is already is waited for.
//
// It is to be deferred itself: within another deferred function it does not see panics. It panics when err or undo is nil.
func Compensate(ctx *OrchestrationContext, err *error, undo func(*OrchestrationContext) error) {
	switch {
	case err == nil:
		panic("perdure: Compensate without the address of the error that the function returns")
	case undo == nil:
		panic("perdure: Compensate with a nil function")
	case ctx.replay.IsUnwinding():
		return // not the code's own end: it is only dropped from memory
	}
	if r := recover(); r != nil {
		f := replay.Panicked(r) // while its stack is there
		if failed := ctx.undo(undo); failed != nil {
			f.Message = bounded(failed.Error() + "\nwhile undoing what had been done before: " + f.Message)
		}
		panic(&compensatedPanic{f})
	}
	if *err == nil || ctx.continuesOn(*err) {
		return
	}
	if failed := ctx.undo(undo); failed != nil {
		*err = errors.Join(*err, failed)
	}
}

// undo waits for the ends of the calls of the scope that asked for it, and then undoes.
func (ctx *OrchestrationContext) undo(undo func(*OrchestrationContext) error) error {
	ctx.replay.AwaitEnds(string(ReasonDroppedFuture))
	return undo(WithoutCancel(ctx))
}

// compensatedPanic is a panic that goes on after something was undone, with the stack of where it began.
type compensatedPanic struct{ failure *history.Failure }

// Failure is what the orchestration fails with.
func (p *compensatedPanic) Failure() *history.Failure { return p.failure }

// String is for code that recovers it.
func (p *compensatedPanic) String() string { return p.failure.Message }

// IsContinueAsNew reports whether an error is ContinueAsNew's, or wraps nothing else: what an orchestration that returns it has done is
// not to be undone. Code with a deferred function of its own asks it, and [OrchestrationContext.Err]: an instance that was cancelled
// does not continue. [Compensate] does both. It is false of nil.
func IsContinueAsNew(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := err.(*continueAsNewError); ok { //nolint:errorlint // one layer at a time
		return true
	}
	causes := unwrap(err)
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(cause error) bool { return !IsContinueAsNew(cause) })
}

// continuesOn reports whether the instance continues as new when the orchestration returns err.
func (ctx *OrchestrationContext) continuesOn(err error) bool {
	orders, rest := ctx.split(err)
	return len(orders) > 0 && len(rest) == 0 && !ofSeveralCalls(orders) && !ctx.replay.IsInstanceCancelled()
}
