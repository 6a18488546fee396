package replay

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/panics"
)

// Unscoped contains the calls of an orchestration's code that have the same effect in every scope.
type Unscoped struct{ Info }

// Settled returns a task that is settled already, without scheduling anything. f is nil for success.
func (u Unscoped) Settled(name string, f *history.Failure) *Task {
	u.x.scheduler.Enter()
	return u.x.tasks.NewSettled(name, f)
}

// Go starts a coroutine. It first runs after the coroutines that are ready now. The task settles when code returns. A
// panic in code fails the orchestration.
func (u Unscoped) Go(code func()) *Task {
	u.x.scheduler.Enter()

	t := u.x.tasks.NewSignal()
	u.x.scheduler.Spawn(func() {
		code()
		u.x.tasks.Signal(t)
	})
	return t
}

// Attempt runs code and returns the failure of its panic, or nil. If the engine is ending the coroutine, it does not
// recover.
func (u Unscoped) Attempt(code func()) (f *history.Failure) {
	returned := false
	defer func() {
		gate := u.x.scheduler.Gate()
		if returned || gate.Is(coroutine.Unwinding) || gate.Is(coroutine.Abandoned) {
			return
		}
		if r := recover(); r != nil {
			f = panics.FailureOf(r)
		}
	}()
	code()
	returned = true
	return nil
}

// Refuse fails the turn with an UnregisteredError, because the code called something that the registry cannot name. It
// does not return.
func (u Unscoped) Refuse(what string) {
	u.x.scheduler.Enter()
	u.x.scheduler.Fail(&UnregisteredError{InstanceID: u.x.options.InstanceID, What: what})
}

// NewSignal returns a task that the code settles with Signal. The history does not record it.
func (u Unscoped) NewSignal() *Task {
	u.x.scheduler.Enter()
	return u.x.tasks.NewSignal()
}

// Signal settles a task of NewSignal. It does nothing if the task is settled already.
func (u Unscoped) Signal(t *Task) {
	u.x.scheduler.Enter()
	u.x.tasks.Signal(t)
}

// Cancel cancels tasks. They settle with the reason and a failure of type history.TypeCancelled. They settle
// immediately, or after their end if the cancellation waits for the end (WaitCancel).
func (u Unscoped) Cancel(reason, message string, tasks ...*Task) {
	u.x.scopes.Cancel(reason, message, tasks...)
}

// SameExecution reports whether two contexts belong to the same execution.
func (u Unscoped) SameExecution(o *Context) bool { return u.x == o.x }
