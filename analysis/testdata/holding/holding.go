// Package holding has a type that holds an orchestration's context, for other packages.
package holding

import (
	"time"

	"github.com/perdure/perdure"
)

// Saga is what an orchestration does.
type Saga struct {
	ctx  *perdure.OrchestrationContext
	seen []string
}

// New begins one.
func New(ctx *perdure.OrchestrationContext) *Saga { return &Saga{ctx: ctx} }

// Pause waits.
func (s *Saga) Pause() error { return s.pauseFor(time.Second) }

func (s *Saga) pauseFor(d time.Duration) error { return perdure.Sleep(s.ctx, d) }

// Count asks for nothing.
func (s *Saga) Count() int { return len(s.seen) }

// Safe is a context that nothing cancels.
func Safe(ctx *perdure.OrchestrationContext) *perdure.OrchestrationContext {
	return perdure.WithoutCancel(ctx)
}
