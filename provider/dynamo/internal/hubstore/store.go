// Package hubstore stores items that belong to a hub and to no instance: worker reports, jobs, the list of schedules,
// and the positions of the sweeper.
package hubstore

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the items of a hub. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
	log   *slog.Logger
}

// New returns the store of a hub.
func New(t *table.Table, now func() time.Time, log *slog.Logger) *Store {
	return &Store{table: t, now: now, log: log}
}
