// Package finalexec reads the last execution of an instance for a deletion: its end, its outstanding work and, if the
// history is damaged, the readable part.
package finalexec

import (
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider"
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

// MaxReadTime limits the time for which a deletion reads the history of a running instance, before it ends the instance
// anyway.
const MaxReadTime = 5 * time.Second

// ReadWithin is readAll with a time limit. whole is false if the limit was reached.
func (rd *Reader) ReadWithin(
	ctx context.Context, in *provider.Instance, limit time.Duration,
) (d *Execution, whole bool, err error) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(rd.now())/4) //nolint:mnd // a quarter
	}
	look, stop := context.WithTimeout(ctx, limit)
	defer stop()
	d, err = rd.readAll(look, in)
	if err != nil && look.Err() != nil && ctx.Err() == nil {
		return d, false, nil
	}
	return d, true, err
}

// maxLargeReads is the number of large histories that a process reads concurrently. A hundred deletions can run in a
// function with 256 MB.
const maxLargeReads = 2

// AcquireLarge acquires the semaphore for reads of large histories, or returns when ctx ends.
func (rd *Reader) AcquireLarge(ctx context.Context) (release func(), err error) {
	select {
	case rd.large <- struct{}{}:
		return func() { <-rd.large }, nil
	case <-ctx.Done():
		return func() {}, &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: context.Cause(ctx)}
	}
}
