package perdure

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/panics"
	"github.com/perdure/perdure/internal/usercode"
)

// MaxCustomStatusBytes is the maximum size of a custom status, encoded as JSON: 16 KiB.
const MaxCustomStatusBytes = 16 << 10

// OrchestrationContext is the context of an orchestration. It identifies the instance, and all calls of the
// orchestration use it. It is not a context.Context, because an orchestration may wait only for futures. It must not be
// used on other goroutines.
type OrchestrationContext struct {
	replay   *replay.Context
	registry *registry.Registry
	name     string // name of the orchestration
}

// execution returns the execution as it calls user code.
func (ctx *OrchestrationContext) execution() usercode.Execution[*OrchestrationContext] {
	return usercode.Execution[*OrchestrationContext]{Name: ctx.name, Replay: ctx.replay, Context: ctx}
}

// Now returns the time of the turn in UTC, which is the same in each replay. It is constant within a turn and never
// decreases. After a timer has fired, Now is not before the timer's due time.
func (ctx *OrchestrationContext) Now() time.Time { return ctx.replay.Now() }

// Err returns nil until the scope of ctx is cancelled, and then always the same *CancelledError. The scope of an
// orchestration's own context is cancelled when the instance is cancelled. For other scopes, see WithCancel.
func (ctx *OrchestrationContext) Err() error {
	if c := ctx.replay.Cancellation(); c != nil {
		return cancelledError(c)
	}
	return nil
}

// IsReplaying reports whether the orchestration is being replayed. Do not base decisions on it. It is also true while
// deferred functions run because the instance is removed from memory.
func (ctx *OrchestrationContext) IsReplaying() bool { return ctx.replay.IsReplaying() }

// InstanceID returns the ID of the instance. It does not change when the orchestration continues as new.
func (ctx *OrchestrationContext) InstanceID() string { return ctx.replay.InstanceID() }

// ExecutionID returns the ID of the current execution, a ULID.
func (ctx *OrchestrationContext) ExecutionID() string { return ctx.replay.ExecutionID() }

// NewUUID returns a random UUID that is the same in each replay. It is derived from the execution ID, so do not use it
// as a secret.
func (ctx *OrchestrationContext) NewUUID() string { return ctx.replay.NewUUID() }

// Rand returns a source of random numbers that are the same in each replay. They are derived from the execution ID, so
// do not use them as secrets.
func (ctx *OrchestrationContext) Rand() *rand.Rand { return ctx.replay.Rand() }

// Logger returns a logger that adds the instance ID and execution ID to each line. It discards lines while IsReplaying
// is true, so that each line is written once.
func (ctx *OrchestrationContext) Logger() *slog.Logger { return ctx.replay.Logger() }

// SetCustomStatus sets the custom status of the instance, a value of any type that clients can read. The status remains
// until the next call, and after the instance has ended. If the value does not change, nothing is recorded.
// SetCustomStatus panics if the value cannot be encoded as JSON or is larger than MaxCustomStatusBytes, which fails the
// orchestration unless it recovers.
func (ctx *OrchestrationContext) SetCustomStatus(v any) {
	doc, err := adapter.Encode(payloadjson.CustomStatus(ctx.name), v, MaxCustomStatusBytes)
	if err != nil {
		panic(panics.With(failureOf(err)))
	}
	ctx.replay.SetCustomStatus(doc)
}
