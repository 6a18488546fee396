package perdure

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// ContinueAsNew ends this execution and has the instance begin anew, with another input and an empty history: for
// orchestrations that never end, or that loop for long. It is the last thing that an orchestration does:
//
//	return perdure.ContinueAsNew[Out](ctx, next)
//
// External events that were not consumed go on to the next execution; everything else that is outstanding is cancelled. The next
// execution takes the highest version there is, unless the instance was started with one.
//
// An instance that was cancelled does not continue: the order is refused, and the instance ends as if the orchestration had
// returned ctx.Err. So a cancel is not lost when the code did not look at it.
//
// The call decides nothing: it makes an error, and what counts is that the orchestration returns it. So deferred calls
// run, and code in between sees an error like any other. Wrapped it is still the same; one that is not returned does nothing.
// Returned together with any other error, as by errors.Join, or with that of another call, the orchestration fails, so that no
// failure is lost. To another execution it is a mere error.
//
// An input that does not encode, or of more than MaxPayloadBytes, is the error instead.
func ContinueAsNew[Out, In any](ctx *OrchestrationContext, in In) (Out, error) {
	var none Out
	doc, err := ctx.encode(payload{input, orchestration, ctx.name}, in)
	if err != nil {
		return none, err
	}
	return none, &continueAsNewError{execution: ctx.replay, input: doc}
}

// continueAsNewError is the order to continue as new, on its way through the code's returns.
type continueAsNewError struct {
	execution *replay.Context
	input     json.RawMessage
}

// Error implements error, for code that logs it and for executions that it is not of.
func (e *continueAsNewError) Error() string {
	return fmt.Sprintf("perdure: instance %q continues as new when its execution %s returns this error", e.execution.InstanceID(), e.execution.ExecutionID())
}

// ErrorType names the error where it travels, which it does only by mistake.
func (e *continueAsNewError) ErrorType() string { return history.TypeError }

// ending is what the return of a body comes to.
func (ctx *OrchestrationContext) ending(out json.RawMessage, err error) replay.Ending {
	if err == nil {
		return replay.Ending{Kind: history.OrchestrationCompleted, Output: out}
	}
	orders, rest := ctx.split(err)
	switch {
	case ctx.Err() != nil && !slices.ContainsFunc(rest, func(err error) bool { return !ctx.unwound(err) }):
		return replay.Ending{Kind: history.OrchestrationCancelled} // an order to continue is refused
	case len(orders) == 0:
		// A failure, as most are.
	case len(rest) > 0:
		err = fmt.Errorf("perdure: the orchestration fails instead of continuing as new, because it returned another error with ContinueAsNew's: %w", errors.Join(rest...))
	case ofSeveralCalls(orders):
		err = errors.New("perdure: the orchestration fails instead of continuing as new, because it returned the errors of several calls of ContinueAsNew: only one can be the next")
	default:
		return replay.Ending{Kind: history.OrchestrationContinuedAsNew, Input: orders[0].input}
	}
	return replay.Ending{Kind: history.OrchestrationFailed, Error: failureOf(err)}
}

// ofSeveralCalls reports whether orders to continue as new are not all the same one.
func ofSeveralCalls(orders []*continueAsNewError) bool {
	return slices.ContainsFunc(orders, func(e *continueAsNewError) bool { return e != orders[0] })
}

// split takes an error apart: into this execution's orders to continue as new, and the largest parts that hold none.
func (ctx *OrchestrationContext) split(err error) (orders []*continueAsNewError, rest []error) {
	if e, ok := err.(*continueAsNewError); ok && e.execution.SameExecution(ctx.replay) { //nolint:errorlint // one layer at a time
		return []*continueAsNewError{e}, nil
	}
	for _, cause := range unwrap(err) {
		o, r := ctx.split(cause)
		orders, rest = append(orders, o...), append(rest, r...)
	}
	if len(orders) == 0 {
		return nil, []error{err}
	}
	return orders, rest
}
