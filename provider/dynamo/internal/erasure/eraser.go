// Package erasure erases executions: it replaces segments by stubs, and deletes other items and stored payloads. Cancel
// decisions stay until no message can refer to the execution.
package erasure

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/payloads"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Eraser erases executions. It is safe for concurrent use.
type Eraser struct {
	table    *table.Table
	cancels  *cancels.Store
	payloads *payloads.Store // nil if the hub has no bucket
	now      func() time.Time
}

// New returns an eraser.
func New(t *table.Table, c *cancels.Store, p *payloads.Store, now func() time.Time) *Eraser {
	return &Eraser{table: t, cancels: c, payloads: p, now: now}
}
