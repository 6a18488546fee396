package perdure

import (
	"time"

	"github.com/perdure/perdure/internal/errtree"
	"github.com/perdure/perdure/internal/replay"
)

// CancelFunc ends the scope of a context. Calls after the first one have no effect.
type CancelFunc func()

// WithCancel returns a context with a new scope, and the function that ends the scope. Call the function as soon as the
// work of the scope is complete.
//
// When a scope ends:
//
//   - Outstanding work that was scheduled through its contexts is cancelled, with the reason ReasonScopeEnded. Nested
//     scopes also end.
//   - Every current or later wait through its contexts returns the same *CancelledError, even if the future has
//     settled.
//   - Later calls through its contexts schedule nothing. Their futures have failed with that error.
//   - External events that were not consumed return to the heads of their queues.
//
// A scope ends with its parent scope, and with the same error. The scope of the orchestration's own context ends when
// the instance is cancelled. A coroutine whose scope has ended continues, and only its waits end.
//
// A wait through one scope for a future of another scope ends with either scope. If the waiting scope ends, the future
// does not change. If the scope of the future ends, the future settles.
func WithCancel(ctx *OrchestrationContext) (*OrchestrationContext, CancelFunc) {
	return scoped(ctx, ctx.replay.WithCancel())
}

// WithTimeout is like WithCancel, and also ends the scope when d has elapsed since ctx.Now, with the reason
// ReasonTimeout. errors.Is then finds context.DeadlineExceeded in its error. If d is 0 or less, the scope has already
// ended. The timeout is recorded as a timer. WithTimerName sets the name of the timer, and the CancelFunc cancels it.
func WithTimeout(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) (*OrchestrationContext, CancelFunc) {
	return scoped(ctx, ctx.replay.WithTimeout(d, timerName(opts)))
}

// WithoutCancel returns a context that is not cancelled when ctx or the instance is cancelled. Use it for work that
// must be done despite a cancellation:
//
//	safe := perdure.WithoutCancel(ctx)
//	_, err := perdure.CallActivity(safe, handIn, keys).Await(safe)
//
// Also use it to wait until the coroutines of an ended scope have cleaned up. When the orchestration returns, it
// abandons running coroutines and cancels outstanding work, including work that was scheduled through this context.
// [Compensate] passes such a context to its undo function.
func WithoutCancel(ctx *OrchestrationContext) *OrchestrationContext {
	return ctx.with(ctx.replay.WithoutCancel())
}

func scoped(ctx *OrchestrationContext, scope *replay.Context) (*OrchestrationContext, CancelFunc) {
	return ctx.with(scope), func() { scope.End(string(ReasonScopeEnded)) }
}

// with returns the context of the same orchestration in another scope.
func (ctx *OrchestrationContext) with(scope *replay.Context) *OrchestrationContext {
	return &OrchestrationContext{replay: scope, registry: ctx.registry, name: ctx.name}
}

// cancelledError returns the error of a cancelled scope. Each call returns the same error.
func cancelledError(c *replay.Cancellation) error {
	if c.Err == nil {
		c.Err = &CancelledError{Reason: CancelReason(c.Reason), Message: c.Message}
	}
	return c.Err
}

// isOwnCancel reports whether an error consists only of the error of the cancelled scope.
func (ctx *OrchestrationContext) isOwnCancel(err error) bool {
	c := ctx.replay.Cancellation()
	return c != nil && errtree.Every(err, func(err error) bool {
		e, ok := err.(*CancelledError) //nolint:errorlint // one layer at a time
		scopeErr := cancelledError(c)
		return err == scopeErr || ok && e.scope == scopeErr //nolint:errorlint // the same error, not an equal one
	})
}
