// Package holding has a type that contains an orchestration's context, for other packages.
package holding

import (
	"time"

	"github.com/perdure/perdure"
)

// Saga runs steps of an orchestration.
type Saga struct {
	ctx  *perdure.OrchestrationContext
	seen []string
}

// New returns a Saga.
func New(ctx *perdure.OrchestrationContext) *Saga { return &Saga{ctx: ctx} }

// Pause waits for a timer.
func (s *Saga) Pause() error { return s.pauseFor(time.Second) }

func (s *Saga) pauseFor(d time.Duration) error { return perdure.Sleep(s.ctx, d) }

// Count does not use the context.
func (s *Saga) Count() int { return len(s.seen) }

// Safe returns a context that is never cancelled.
func Safe(ctx *perdure.OrchestrationContext) *perdure.OrchestrationContext {
	return perdure.WithoutCancel(ctx)
}
