// Package attempts stores the records of activities: the state that workers report, the run lease, the current attempt
// of an activity that has failed before, and the crash markers of deliveries.
package attempts

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the records of activities. It is safe for concurrent use.
type Store struct {
	table   *table.Table
	cancels *cancels.Store
	now     func() time.Time
}

// New returns the records of activities in a table.
func New(t *table.Table, c *cancels.Store, now func() time.Time) *Store {
	return &Store{table: t, cancels: c, now: now}
}
