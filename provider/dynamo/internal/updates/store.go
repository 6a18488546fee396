// Package updates stores the results of updates as items beside the instance, so that a repeated call finds the result
// whichever execution is the current one.
package updates

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the results of updates. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the results of updates in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }
