package settlements

import (
	"context"
	"sync/atomic"

	"github.com/perdure/perdure/provider"
)

// SharedRead reads an execution once for several work items that check at about the same time whether their activities
// have ended.
type SharedRead struct {
	ctx     context.Context //nolint:containedctx // shared by all work items
	started atomic.Bool
	done    chan struct{}
	err     error
}

// NewSharedRead returns a SharedRead, which reads with ctx.
func NewSharedRead(ctx context.Context) *SharedRead {
	return &SharedRead{ctx: ctx, done: make(chan struct{})}
}

// Ended reports whether the activity of a work item has ended or its result is no longer needed, and whether its
// instance is deleted. It reads the execution, or waits for a concurrent call that reads it.
func (s *SharedRead) Ended(
	ctx context.Context, c *Cache, r Reader, it *provider.WorkItem,
) (ended, deleted bool, err error) {
	x := c.Execution(it.ExecutionID)
	if ended, deleted, _ = hasEnded(x, it); ended {
		return ended, deleted, nil // an end is final
	}
	if s.started.CompareAndSwap(false, true) {
		s.err = x.Read(s.ctx, r, it.Segment) //nolint:contextcheck // the shared one
		close(s.done)
	} else {
		<-s.done
	}
	err = s.err
	ended, deleted, read := hasEnded(x, it)
	if err == nil && !read { // the shared read started at a later segment
		err = x.Read(ctx, r, it.Segment)
		ended, deleted, _ = hasEnded(x, it)
	}
	return ended, deleted, err
}

// hasEnded returns the cached state of a work item. A cancelled activity counts as ended, unless its end is awaited.
func hasEnded(x *Execution, it *provider.WorkItem) (ended, deleted, read bool) {
	a := x.Activity(it.ActivityID, it.Segment)
	return a.ExecutionEnded || a.Settled || !it.WaitForCancellation && a.Cancelled, a.Deleted, a.Read
}
