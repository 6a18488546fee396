package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/ending"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/replay/panics"
)

// Compensate runs undo if the function that defers it returns an error, for example because of a cancellation, or
// panics. Defer Compensate directly after the call, before you check its error, with the address of the function's
// named error result. A call that failed, timed out or was cancelled can have succeeded.
//
//	func Fulfil(ctx *perdure.OrchestrationContext, o Order) (r Receipt, err error) {
//		r, err = perdure.CallActivity(ctx, charge, o, perdure.WaitForCancellation()).Await(ctx)
//		defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
//			_, err := perdure.CallActivity(ctx, refund, o.ID).Await(ctx)
//			return err
//		})
//		if err != nil {
//			return r, err
//		}
//		…
//	}
//
// undo must tolerate a second run, and a run without completed work. Several undo functions run in reverse order. Each
// one gets a context that is not cancelled when ctx or the instance is cancelled. An error of undo is joined to the
// function's error and does not stop the other undo functions.
//
// undo does not run if the function succeeds or continues as new. If the instance was cancelled, it does not continue
// as new and undo runs. undo also does not run if the instance is terminated, purged or removed from memory.
//
// Before the first undo, Compensate cancels the outstanding calls of its scope and nested scopes that were made with
// [WaitForCancellation], and waits until they have ended. The reason of the cancellation is ReasonScopeEnded. If a
// scope has several Compensate calls, the first one to run waits for all of these calls. Other calls continue. If one
// of several parallel steps fails, the calls of all steps in the same scope are cancelled. Give each step its own scope
// with [WithCancel] to avoid this. With a context of [WithoutCancel], Compensate cancels nothing, but waits for the
// calls that are already cancelled.
//
// Compensate cannot see a panic if it is called in another deferred function. It panics if err or undo is nil. See
// docs/guides/compensation.md.
func Compensate(ctx *OrchestrationContext, err *error, undo func(*OrchestrationContext) error) {
	switch {
	case err == nil:
		panic("perdure: Compensate: err is nil; pass the address of the function's named error result")
	case undo == nil:
		panic("perdure: Compensate: undo is nil")
	case ctx.replay.IsUnwinding():
		return // the engine is only removing the instance from memory
	}
	if r := recover(); r != nil {
		f := panics.FailureOf(r) // before the stack of the panic is lost
		if failed := ctx.undo(undo); failed != nil {
			f.Message = failures.Truncate(failed.Error() + "\nwhile compensating for the panic: " + f.Message)
		}
		panic(panics.Again(f))
	}
	if *err == nil || ending.ContinuesOn(ctx.replay, *err) {
		return
	}
	if failed := ctx.undo(undo); failed != nil {
		*err = errors.Join(*err, failed)
	}
}

// undo waits for the calls of the scope that use WaitForCancellation, and then runs an undo function.
func (ctx *OrchestrationContext) undo(undo func(*OrchestrationContext) error) error {
	ctx.replay.AwaitEnds(string(ReasonScopeEnded))
	return undo(WithoutCancel(ctx))
}
