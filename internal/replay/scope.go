package replay

import (
	"time"

	"github.com/perdure/perdure/internal/replay/tasks"
)

// WithCancel returns a context with a new scope below the scope of c. End cancels the new scope.
func (c *Context) WithCancel() *Context {
	c.x.scheduler.Enter()
	return c.in(c.scope.Derive())
}

// WithTimeout is like WithCancel, with a timer that cancels the scope after d and has a name, as in CreateTimer. The
// timer belongs to the scope. If d is not positive, the scope is cancelled already, and there is no timer.
func (c *Context) WithTimeout(d time.Duration, name string) *Context {
	c = c.WithCancel()
	switch {
	case c.scope.Cancellation() != nil: // together with the parent scope
	case d <= 0:
		c.scope.Expire()
	default:
		c.CreateTimer(d, name).SetExpires()
	}
	return c
}

// WithoutCancel returns a context with a scope that is never cancelled.
func (c *Context) WithoutCancel() *Context { return c.in(tasks.Shield()) }

// Cancellation returns the cancellation of the context's scope, or nil if the scope is not cancelled.
func (c *Context) Cancellation() *Cancellation { return c.scope.Cancellation() }

// End cancels the scope of a context that WithCancel or WithTimeout returned. It does nothing if the scope is cancelled
// already.
func (c *Context) End(reason string) {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() == nil {
		c.x.scopes.End(c.scope, reason)
	}
}

// AwaitEnds waits for the ends of tasks that settle only after their end (WaitCancel). It waits for the tasks of the
// context's scope and of the scopes below it, including tasks that are scheduled during the wait. It first cancels the
// tasks that are not cancelled. It cancels nothing in the scope of WithoutCancel, because all coroutines share that
// scope.
func (c *Context) AwaitEnds(reason string) { c.x.scopes.AwaitEnds(c.scope, reason) }
