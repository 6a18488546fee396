// Package retention deletes ended instances and past executions whose retention has passed.
package retention

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Stores are the stores that Retention reads and writes.
type Stores struct {
	Table     *table.Table
	Instances *instances.Store
	Segments  *segments.Store
	Eraser    *erasure.Eraser
	Deleter   *deletion.Deleter
}

// Retention applies the retention of instances. It is safe for concurrent use.
type Retention struct {
	table     *table.Table
	instances *instances.Store
	segments  *segments.Store
	erasure   *erasure.Eraser
	deletion  *deletion.Deleter
	now       func() time.Time
	log       *slog.Logger
}

// New returns the retention of a hub.
func New(s Stores, now func() time.Time, log *slog.Logger) *Retention {
	return &Retention{
		table: s.Table, instances: s.Instances, segments: s.Segments, erasure: s.Eraser, deletion: s.Deleter, now: now,
		log: log,
	}
}
