package perdure

import (
	"encoding/json"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/panics"
)

// SideEffect calls fn, records its result in the history and returns it. In a replay it returns the recorded value and
// does not call fn. Use it for values that vary and are quick to compute, such as an environment variable. Use an
// activity for everything else. If the commit of a turn fails, the turn is repeated and calls fn again.
//
// The result passes through JSON and is at most MaxPayloadBytes. If fn panics, or the result cannot be encoded or is
// too large, the failure is recorded, and SideEffect panics now and in each replay. The panic fails the orchestration
// unless the code recovers. fn must not use the context of the orchestration.
func SideEffect[T any](ctx *OrchestrationContext, fn func() T) T {
	var value T
	of := payloadjson.SideEffect()
	f := ctx.replay.SideEffect(replay.SideEffect{
		Produce: func() (json.RawMessage, *history.Failure) { return produce(ctx, of, fn, &value) },
		Accept:  func(doc json.RawMessage) error { return payloadjson.Decode(of, doc, &value) },
	})
	if f != nil {
		panic(panics.With(f))
	}
	return value
}

// produce sets value to the value that a replay will read.
func produce[T any](ctx *OrchestrationContext, of payloadjson.Name, fn func() T, value *T) (
	doc json.RawMessage, f *history.Failure,
) {
	defer failures.Recover(&doc, &f)
	doc, err := ctx.encode(of, fn())
	if err == nil {
		err = payloadjson.Decode(of, doc, value)
	}
	if err != nil {
		return nil, failureOf(err)
	}
	return doc, nil
}
