// Package compensation undoes completed work through contexts that may be cancelled.
package compensation

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

func pause(ctx *perdure.OrchestrationContext) { _ = perdure.Sleep(ctx, time.Second) }

// A scope may be cancelled if its parent context may be cancelled.
func scopes(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	limited, stop := perdure.WithTimeout(ctx, time.Minute)
	defer stop()
	defer perdure.Sleep(limited, time.Second) // want `scopes waits in a deferred function.*\[compensation\]`
	defer pause(limited)                      // want `scopes defers pause, which waits.*\[compensation\]`
	defer func() {
		scope, cancel := perdure.WithCancel(limited)
		defer cancel()
		_ = perdure.Sleep(scope, time.Second) // want `scopes waits in a deferred function.*\[compensation\]`
	}()
	same := ctx
	defer pause(same) // want `scopes defers pause, which waits.*\[compensation\]`
	return "", nil
}

// aliased uses its context through another variable.
type aliased struct{ ctx *perdure.OrchestrationContext }

func (a *aliased) undo() {
	ctx := a.ctx
	_ = perdure.Sleep(ctx, time.Second)
}

// cleaner and keeper have a context each. Only one of the contexts is never cancelled.
type cleaner struct {
	name string
	ctx  *perdure.OrchestrationContext
}

func (c *cleaner) clean() { _ = perdure.Sleep(c.ctx, time.Second) }

type keeper struct {
	name string
	ctx  *perdure.OrchestrationContext
}

func newCleaner(ctx *perdure.OrchestrationContext) *cleaner { return &cleaner{"all", ctx} }

func (k *keeper) clean() { _ = perdure.Sleep(k.ctx, time.Second) }

func structs(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	a := &aliased{ctx: ctx}
	defer a.undo() // want `structs defers aliased\.undo, which waits.*\[compensation\]`
	k := keeper{"all", perdure.WithoutCancel(ctx)}
	defer k.clean()
	defer newCleaner(ctx).clean() // want `structs defers cleaner\.clean, which waits.*\[compensation\]`
	return "", nil
}

// Other callers pass a context that is never cancelled. This caller passes a context that may be cancelled.
func given(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	pause(perdure.WithoutCancel(ctx))
	defer pause(ctx) // want `given defers pause, which waits.*\[compensation\]`
	return "", nil
}

// renamed uses its context through another variable.
func renamed(ctx *perdure.OrchestrationContext) error {
	own := ctx
	defer pause(own) // want `renamed defers pause, which waits.*\[compensation\]`
	return nil
}

// scoped returns a scope of its context.
func scoped(ctx *perdure.OrchestrationContext) *perdure.OrchestrationContext {
	scope, _ := perdure.WithCancel(ctx)
	return scope
}

func scopedByItself(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	defer pause(scoped(ctx)) // want `scopedByItself defers pause, which waits.*\[compensation\]`
	return "", nil
}

func send(context.Context, string) (string, error) { return "", nil }

var label = perdure.DefineActivity[string, string]("label")

// A call with a cancelled context schedules nothing, even if the wait has another context.
func calls(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	safe := perdure.WithoutCancel(ctx)
	defer func() {
		_, _ = perdure.CallActivity(ctx, send, "a").Await(safe) // want `calls calls an activity in a deferred function with a context that may be cancelled.*\[compensation\]`
	}()
	defer func() {
		_, _ = label.Call(ctx, "a").Await(safe) // want `calls calls an activity in a deferred function.*\[compensation\]`
	}()
	defer func() {
		_, _ = perdure.CallSubOrchestration(ctx, given, "a").Await(safe) // want `calls calls a sub-orchestration in a deferred function.*\[compensation\]`
	}()
	defer undo(ctx) // want `calls defers undo, which calls an activity with a context that may be cancelled.*\[compensation\]`
	return "", nil
}

func undo(ctx *perdure.OrchestrationContext) {
	_, _ = perdure.CallActivity(ctx, send, "a").Await(perdure.WithoutCancel(ctx))
}
