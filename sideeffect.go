package perdure

import (
	"github.com/perdure/perdure/internal/replay/panics"
	"github.com/perdure/perdure/internal/usercode"
)

// SideEffect calls fn, records its result in the history and returns it. In a replay it returns the recorded value and
// does not call fn. Use it for values that vary and are quick to compute, such as an environment variable. Use an
// activity for everything else. If the commit of a turn fails, the turn is repeated and calls fn again.
//
// The result passes through JSON and is at most MaxPayloadBytes. If fn panics, or the result cannot be encoded or is
// too large, the failure is recorded, and SideEffect panics now and in each replay. The panic fails the orchestration
// unless the code recovers. fn must not use the context of the orchestration.
func SideEffect[T any](ctx *OrchestrationContext, fn func() T) T {
	value, f := usercode.SideEffect(&adapter, ctx.replay, fn)
	if f != nil {
		panic(panics.With(f))
	}
	return value
}
