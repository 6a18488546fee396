package perdure

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// OrchestrationContext is what an orchestration sees of its instance, and what everything it asks for goes through. It is no
// context.Context: nothing but futures may be waited for in an orchestration. It must not be used on other goroutines.
type OrchestrationContext struct {
	replay   *replay.Context
	registry *registry.Registry
	name     string // the orchestration's
}

// Now is the time of the turn, in UTC: the same in each replay. It does not move while the orchestration runs, and never
// goes back; when a timer has fired it is not before the timer's time.
func (ctx *OrchestrationContext) Now() time.Time { return ctx.replay.Now() }

// Err is nil while the context's scope lives: that of the orchestration's own context until the instance is cancelled; other scopes are
// described at WithCancel. Then it is a *CancelledError, always the same.
func (ctx *OrchestrationContext) Err() error {
	if c := ctx.replay.Cancellation(); c != nil {
		return cancelledError(c)
	}
	return nil
}

// IsReplaying reports whether the orchestration is only brought back to where it was. Nothing may be decided by it. It is
// true as well while an instance is dropped from memory and its deferred calls run.
func (ctx *OrchestrationContext) IsReplaying() bool { return ctx.replay.IsReplaying() }

// InstanceID is the instance's id: it stays the same for as long as the instance lives.
func (ctx *OrchestrationContext) InstanceID() string { return ctx.replay.InstanceID() }

// ExecutionID is the id of the instance's current execution, a ULID.
func (ctx *OrchestrationContext) ExecutionID() string { return ctx.replay.ExecutionID() }

// NewUUID makes a random UUID, the same in each replay. It is not a secret: it derives from the execution's id.
func (ctx *OrchestrationContext) NewUUID() string { return ctx.replay.NewUUID() }

// Rand is a source of random numbers, the same in each replay. They are no secrets: they derive from the execution's id.
func (ctx *OrchestrationContext) Rand() *rand.Rand { return ctx.replay.Rand() }

// Logger logs with the instance's and execution's id. It is silent while IsReplaying, so that each line is written once.
func (ctx *OrchestrationContext) Logger() *slog.Logger { return ctx.replay.Logger() }
