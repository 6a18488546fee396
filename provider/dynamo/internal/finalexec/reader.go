// Package finalexec reads the last execution of an instance for a deletion: its end, its outstanding work and, if the
// history is damaged, the readable part.
package finalexec

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// Reader reads last executions. It is safe for concurrent use.
type Reader struct {
	table    *table.Table
	segments *segments.Store
	timers   *timers.Timers
	now      func() time.Time
	log      *slog.Logger
	// large is a semaphore for concurrent reads of large histories.
	large chan struct{}
}

// New returns a reader.
func New(t *table.Table, s *segments.Store, tm *timers.Timers, now func() time.Time, log *slog.Logger) *Reader {
	return &Reader{table: t, segments: s, timers: tm, now: now, log: log, large: make(chan struct{}, maxLargeReads)}
}
