// Package segments stores the history of executions. A turn commits its events as one segment, an item that must not
// exist. Readers read segments page by page, and long histories from rollups.
package segments

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store commits and reads segments. It is safe for concurrent use.
type Store struct {
	table     *table.Table
	instances *instances.Store
	documents *Documents
	now       func() time.Time
	log       *slog.Logger

	// rollupSize is the minimum number of segments in a rollup, and the minimum number of segments outside of rollups.
	// 0 disables rollups.
	rollupSize   int64
	rollupAlways bool // rollups are written even if they save little
	rollupPause  pause
}

// Config configures a Store.
type Config struct {
	Now func() time.Time
	Log *slog.Logger
	// RollupSize is the minimum number of segments of a rollup, or 0 for no rollups.
	RollupSize int64
	// RollupAlways writes rollups even if they save little.
	RollupAlways bool
}

// New returns the segments in a table.
func New(t *table.Table, i *instances.Store, d *Documents, c Config) *Store {
	return &Store{
		table: t, instances: i, documents: d, now: c.Now, log: c.Log, rollupSize: c.RollupSize,
		rollupAlways: c.RollupAlways,
	}
}

// Documents reads documents from the segments that contain them. It is safe for concurrent use.
type Documents struct {
	table *table.Table
	cache *lru.Cache[[]history.Event]
}

// NewDocuments returns the documents in the segments of a table.
func NewDocuments(t *table.Table) *Documents {
	return &Documents{table: t, cache: lru.New[[]history.Event](documentCacheBytes)}
}

// WorkItems reads the work items of first attempts from the segments that scheduled them. It is safe for concurrent
// use.
type WorkItems struct {
	table *table.Table
	cache *lru.Cache[cachedItems]
}

// NewWorkItems returns the work items in the segments of a table.
func NewWorkItems(t *table.Table) *WorkItems {
	return &WorkItems{table: t, cache: lru.New[cachedItems](workItemCacheBytes)}
}
