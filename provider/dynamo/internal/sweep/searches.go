// Package sweep finds the instances that the sweeper processes: pending, blocked and deleting instances, and instances
// whose retention has passed. It stores the position of each search, so that a sweep continues where the last one
// stopped.
package sweep

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/builds"
	"github.com/perdure/perdure/provider/dynamo/internal/hubstore"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Searches finds instances for the sweeper. It is safe for concurrent use.
type Searches struct {
	table     *table.Table
	instances *instances.Store
	positions *hubstore.Positions
	builds    *builds.Builds
	now       func() time.Time
	log       *slog.Logger
}

// New returns the searches of a hub.
func New(
	t *table.Table, i *instances.Store, ps *hubstore.Positions, b *builds.Builds, now func() time.Time,
	log *slog.Logger,
) *Searches {
	return &Searches{table: t, instances: i, positions: ps, builds: b, now: now, log: log}
}
