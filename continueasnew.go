package perdure

import (
	"encoding/json"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/ending"
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
	return none, ending.ContinueAsNew(ctx.replay, doc)
}

// ending converts the results of an orchestration's function to the end of the execution.
func (ctx *OrchestrationContext) ending(out json.RawMessage, err error) replay.Ending {
	if err == nil {
		return replay.Ending{Kind: history.OrchestrationCompleted, Output: out}
	}
	end, failed := ending.Of(ctx.replay, err, ctx.isOwnCancel)
	if failed != nil {
		end.Error = failureOf(failed)
	}
	return end
}

// IsContinueAsNew reports whether err is the error of ContinueAsNew, or wraps only that error. It is false for nil. Use
// it in your deferred functions to skip compensation when the orchestration continues as new. Also check
// [OrchestrationContext.Err], because a cancelled instance does not continue as new. [Compensate] makes both checks.
func IsContinueAsNew(err error) bool { return ending.IsContinueAsNew(err) }
