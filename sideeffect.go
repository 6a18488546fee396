package perdure

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// SideEffect calls fn, records its value in history and returns it; in a replay it returns the recorded value, and fn is not
// called. It is for what is quick, cannot fail and differs each time, such as a setting that is read from the environment;
// everything else is an activity. A turn that is repeated, because its commit failed, calls fn again.
//
// The value is what JSON makes of it, MaxPayloadBytes at most. When fn panics, or its value does not fit, that is
// recorded as well, and SideEffect panics with it in each replay alike, which fails the orchestration unless it recovers. fn must
// not use the orchestration's context.
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
func produce[T any](ctx *OrchestrationContext, of payload, fn func() T, value *T) (doc json.RawMessage, f *history.Failure) {
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
	return &history.Failure{Type: history.TypePanic, Message: bounded(fmt.Sprint(r)) + "\n\n" + bounded(string(debug.Stack()))}
}

// fatal is what calls without an error to return panic with: unless the code recovers, the orchestration fails with this very
// failure.
type fatal struct{ failure *history.Failure }

// Error implements error, for code that recovers.
func (f *fatal) Error() string { return f.failure.Message }

// Failure implements replay.Panic.
func (f *fatal) Failure() *history.Failure { return f.failure }
