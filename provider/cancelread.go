package provider

import (
	"context"
	"sync/atomic"
)

// CancelRead answers whether activities of an execution are cancelled that were fetched together. It reads the cancel record once for all
// of them, when the first one asks: so what it says is of a moment after they were received (R12), and who is not run yet asks for nothing.
// It is safe for concurrent use.
type CancelRead struct {
	ctx         context.Context //nolint:containedctx // of all for whom it is, whoever asks first
	read        func(ctx context.Context, executionID string, from int64) (Cancels, int64, error)
	executionID string
	from        int64

	begun atomic.Bool
	done  chan struct{}

	cancels Cancels
	next    int64
	err     error
}

// NewCancelRead makes a read for activities of an execution that were scheduled in segment from, or later. read is ReadCancels.
func NewCancelRead(ctx context.Context, read func(ctx context.Context, executionID string, from int64) (Cancels, int64, error), executionID string, from int64) *CancelRead {
	return &CancelRead{ctx: ctx, read: read, executionID: executionID, from: from, done: make(chan struct{})}
}

// Of reads, or waits for who does, and returns whether an activity is cancelled, strongly consistent, and from which segment on nothing
// was read. An error is everybody's.
func (r *CancelRead) Of(activityID int64) (c CancelInfo, next int64, err error) {
	if r.begun.CompareAndSwap(false, true) {
		r.cancels, r.next, r.err = r.read(r.ctx, r.executionID, r.from)
		close(r.done)
	} else {
		<-r.done
	}
	return r.cancels.Of(activityID), r.next, r.err
}

// Ask has items that were fetched together answer whether their activities are cancelled (LockedWorkItem.Cancel): those of an execution
// share a read. It is for AdoptWorkItems; read is ReadCancels, and is not called before one of them is asked.
func Ask(ctx context.Context, items []LockedWorkItem, read func(ctx context.Context, executionID string, from int64) (Cancels, int64, error)) {
	shared := map[string]*CancelRead{}
	for i := range items {
		it := &items[i]
		r := shared[it.ExecutionID]
		if r == nil {
			r = NewCancelRead(ctx, read, it.ExecutionID, it.Segment)
			shared[it.ExecutionID] = r
		}
		r.from = min(r.from, it.Segment)
		it.Cancel = r
	}
}
