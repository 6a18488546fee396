package perdure

import (
	"time"

	"github.com/perdure/perdure/internal/replay"
)

// CancelFunc ends the scope of a context before it ends by itself. It may be called again.
type CancelFunc func()

// WithCancel returns a context of a new scope, and the function that ends it. What was asked for through the context and is
// outstanding then is cancelled with the reason ReasonDroppedFuture, scopes under it too. Every wait through the context, current
// or later, returns the scope's one *CancelledError, whichever future it is for and even if that has settled. What is asked for
// later through the context is not scheduled: its future has failed with that error. External events that the code has not learned
// of go back to the heads of their queues.
//
// A scope ends with the one it was made in, with the same error, and that of an orchestration's own context ends when the
// instance is cancelled. A coroutine is not ended by anything but its waits: it goes on, through the context it was given.
//
// A wait through one scope for a future of another ends with either: when its own scope does, which leaves the future as it is, and
// when the future's does, since that settles the future.
//
// Code should call the function as soon as it is done with the scope.
func WithCancel(ctx *OrchestrationContext) (*OrchestrationContext, CancelFunc) {
	return scoped(ctx, ctx.replay.WithCancel())
}

// WithTimeout is WithCancel, and the scope ends by itself once d has passed since ctx.Now, with the reason ReasonTimeout. Its error is
// a context.DeadlineExceeded then. A scope of a zero or negative d is over from the start. The timer is an ordinary one, in history
// too, which WithName names; the function cancels it.
func WithTimeout(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) (*OrchestrationContext, CancelFunc) {
	return scoped(ctx, replay.WithNamedTimeout(ctx.replay, d, timerOf(opts).name))
}

// WithoutCancel returns a context that is not cancelled when ctx is, or the instance. It is for what must be done even so ([Compensate]
// makes one for what is undone), as in
//
//	safe := perdure.WithoutCancel(ctx)
//	_, err := perdure.CallActivity(safe, handIn, keys).Await(safe)
//
// and for waiting until coroutines that were started in a scope which is over have cleaned up: when the orchestration returns, what
// they still do is given up. That is true of what was asked for through this context as well.
func WithoutCancel(ctx *OrchestrationContext) *OrchestrationContext {
	return ctx.with(ctx.replay.WithoutCancel())
}

func scoped(ctx *OrchestrationContext, scope *replay.Context) (*OrchestrationContext, CancelFunc) {
	return ctx.with(scope), func() { scope.End(string(ReasonDroppedFuture)) }
}

// with is the same orchestration in another scope.
func (ctx *OrchestrationContext) with(scope *replay.Context) *OrchestrationContext {
	return &OrchestrationContext{replay: scope, registry: ctx.registry, name: ctx.name}
}

// cancelledError is the one error of a scope that is over.
func cancelledError(c *replay.Cancellation) error {
	if c.Err == nil {
		c.Err = &CancelledError{Reason: CancelReason(c.Reason), Message: c.Message}
	}
	return c.Err
}

// unwound reports whether an error is nothing but the cancel of the instance: every leaf of it.
func (ctx *OrchestrationContext) unwound(err error) bool {
	c := ctx.replay.Cancellation()
	return c != nil && only(err, cancelledError(c))
}

func only(err, leaf error) bool {
	if err == leaf { //nolint:errorlint // the very error, which may lie anywhere in a tree
		return true
	}
	if e, ok := err.(*CancelledError); ok && e.scope == leaf { //nolint:errorlint // as above: that of a call whose end was waited for
		return true
	}
	causes := unwrap(err)
	for _, cause := range causes {
		if !only(cause, leaf) {
			return false
		}
	}
	return len(causes) > 0
}
