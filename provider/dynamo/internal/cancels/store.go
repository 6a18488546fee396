// Package cancels stores the decisions that cancel activities of an execution. Each turn writes its decisions as items
// of its own, blocks repeat the decisions of many turns, and a mark cancels everything when the instance is deleted.
package cancels

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes cancel decisions. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the cancel decisions in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }
