package perdure

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// SideEffect calls fn, records its result in the history and returns it. In a replay it returns the recorded value and
// does not call fn. Use it for values that vary and are quick to compute, such as an environment variable. Use an
// activity for everything else. If the commit of a turn fails, the turn is repeated and calls fn again.
//
// The result passes through JSON and is at most MaxPayloadBytes. If fn panics, or the result cannot be encoded or is
// too large, the failure is recorded and SideEffect panics, also in each replay. The panic fails the orchestration
// unless the code recovers. fn must not use the context of the orchestration.
func SideEffect[T any](ctx *OrchestrationContext, fn func() T) T {
	var value T
	of := payload{what: effect, of: sideEffect}
	f := ctx.replay.SideEffect(replay.SideEffect{
		Produce: func() (json.RawMessage, *history.Failure) { return produce(ctx, of, fn, &value) },
		Accept:  func(doc json.RawMessage) error { return decode(of, doc, &value) },
	})
	if f != nil {
		panic(&fatal{f})
	}
	return value
}

// produce sets value to what a replay will find.
func produce[T any](ctx *OrchestrationContext, of payload, fn func() T, value *T) (
	doc json.RawMessage, f *history.Failure,
) {
	defer func() {
		if r := recover(); r != nil {
			doc, f = nil, panicFailure(r)
		}
	}()
	doc, err := ctx.encode(of, fn())
	if err == nil {
		err = decode(of, doc, value)
	}
	if err != nil {
		return nil, failureOf(err)
	}
	return doc, nil
}

// panicFailure is called while recovering, so that the stack is that of the panic.
func panicFailure(r any) *history.Failure {
	return &history.Failure{
		Type: history.TypePanic, Message: bounded(fmt.Sprint(r)) + "\n\n" + bounded(string(debug.Stack())),
	}
}

// fatal is what calls without an error to return panic with: unless the code recovers, the orchestration fails with
// this very failure.
type fatal struct{ failure *history.Failure }

// Error implements error, for code that recovers.
func (f *fatal) Error() string { return f.failure.Message }

// Failure implements replay.Panic.
func (f *fatal) Failure() *history.Failure { return f.failure }
