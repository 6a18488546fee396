// Package instances stores the item of each instance: what starts, lists and the sweeper know of it. The item follows
// from the history, so that a later write can always repair it. A deleted instance leaves a tombstone.
package instances

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the items of instances. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the items of instances in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }
