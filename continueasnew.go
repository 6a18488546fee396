package perdure

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errtree"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// ContinueAsNew returns an error that ends this execution and starts the next one with a new input and an empty
// history. Use it in orchestrations that never end, or that loop for a long time. The orchestration must return the
// error:
//
//	return perdure.ContinueAsNew[Out](ctx, next)
//
// External events that were not consumed are passed to the next execution. All other outstanding work is cancelled. The
// next execution runs the highest registered version, unless the instance was started with a version.
//
// The call has no effect until the orchestration returns its error. The error may be wrapped. In these cases the
// instance does not continue as new:
//
//   - The instance was cancelled. It ends as if the orchestration had returned ctx.Err.
//   - The error is joined with another error, or with the error of a second call. The orchestration fails.
//   - Another execution returns the error. It is an ordinary error in that execution.
//
// If the input cannot be encoded or is larger than MaxPayloadBytes, ContinueAsNew returns that error instead.
func ContinueAsNew[Out, In any](ctx *OrchestrationContext, in In) (Out, error) {
	var none Out
	doc, err := ctx.encode(payloadjson.Input(payloadjson.Orchestration, ctx.name), in)
	if err != nil {
		return none, err
	}
	return none, &continueAsNewError{execution: ctx.replay, input: doc}
}

// continueAsNewError is the error of ContinueAsNew.
type continueAsNewError struct {
	execution *replay.Context
	input     json.RawMessage
}

// Error implements error, for code that logs it and for other executions.
func (e *continueAsNewError) Error() string {
	return fmt.Sprintf("perdure: ContinueAsNew: return this error from execution %s of instance %q",
		e.execution.ExecutionID(), e.execution.InstanceID())
}

// ErrorType returns the type name that failures store if the instance does not continue as new.
func (e *continueAsNewError) ErrorType() string { return history.TypeError }

// ending converts the results of an orchestration's function to the end of the execution.
func (ctx *OrchestrationContext) ending(out json.RawMessage, err error) replay.Ending {
	if err == nil {
		return replay.Ending{Kind: history.OrchestrationCompleted, Output: out}
	}
	orders, rest := ctx.split(err)
	switch {
	case ctx.Err() != nil && !slices.ContainsFunc(rest, func(err error) bool { return !ctx.isOwnCancel(err) }):
		return replay.Ending{Kind: history.OrchestrationCancelled} // takes precedence over continuing as new
	case len(orders) == 0:
		// an ordinary failure
	case len(rest) > 0:
		err = fmt.Errorf("perdure: ContinueAsNew: returned together with another error: %w", errors.Join(rest...))
	case areDifferent(orders):
		err = errors.New("perdure: ContinueAsNew: errors of several calls returned; return only one")
	default:
		return replay.Ending{Kind: history.OrchestrationContinuedAsNew, Input: orders[0].input}
	}
	return replay.Ending{Kind: history.OrchestrationFailed, Error: failureOf(err)}
}

// areDifferent reports whether the errors are from different calls of ContinueAsNew.
func areDifferent(orders []*continueAsNewError) bool {
	return slices.ContainsFunc(orders, func(e *continueAsNewError) bool { return e != orders[0] })
}

// split returns the errors of ContinueAsNew for this execution, and the largest parts of err that contain no such
// error.
func (ctx *OrchestrationContext) split(err error) (orders []*continueAsNewError, rest []error) {
	return errtree.Split(err, func(err error) (*continueAsNewError, bool) {
		e, ok := err.(*continueAsNewError) //nolint:errorlint // one layer at a time
		return e, ok && e.execution.SameExecution(ctx.replay)
	})
}
