package provider

import (
	"context"
	"sync"
)

// CancelRead reads the cancellations of activities of one execution. The first call of Of or Read reads the cancel
// record for all activities that were received together (R12). It is safe for concurrent use.
type CancelRead struct {
	ctx         context.Context //nolint:containedctx // several callers share the read
	read        func(ctx context.Context, executionID string, from int64) (Cancels, int64, error)
	executionID string
	from        int64

	mu          sync.Mutex
	begun, over bool
	done        chan struct{} // closed when the read has ended; nil if no caller waits

	cancels Cancels
	next    int64
	err     error
}

// NewCancelRead returns a CancelRead for activities that were scheduled in segment from or later. Pass
// Activities.ReadCancels as read.
func NewCancelRead(
	ctx context.Context, read func(ctx context.Context, executionID string, from int64) (Cancels, int64, error),
	executionID string, from int64,
) *CancelRead {
	return &CancelRead{ctx: ctx, read: read, executionID: executionID, from: from}
}

// Of reports whether an activity is cancelled, with strong consistency, and returns the first segment that was not
// read. It reads the cancel record, or waits for a concurrent read. All callers receive the error of that read.
func (r *CancelRead) Of(activityID int64) (c CancelInfo, next int64, err error) {
	r.Read()
	return r.cancels.Of(activityID), r.next, r.err
}

// Read reads the cancel record once. Later callers wait for the first read.
func (r *CancelRead) Read() {
	if begun, done := r.begin(); begun {
		if done != nil {
			<-done
		}
		return
	}

	r.cancels, r.next, r.err = r.read(r.ctx, r.executionID, r.from)
	r.end()
}

// begin starts the read, or returns true if another call has started the read before. done is closed when that read
// ends. It is nil if the read has ended.
func (r *CancelRead) begin() (before bool, done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before = r.begun; before && !r.over && r.done == nil {
		r.done = make(chan struct{}) // created on demand, because a batch with one item does not need it
	}
	r.begun = true
	return before, r.done
}

func (r *CancelRead) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.done != nil {
		close(r.done)
	}
}

// AttachCancelReads sets LockedWorkItem.Cancel of each item. Items of one execution share a CancelRead. DecodeWorkItems
// calls AttachCancelReads with Activities.ReadCancels as read.
func AttachCancelReads(
	ctx context.Context, items []LockedWorkItem, read func(ctx context.Context, executionID string,
		from int64) (Cancels, int64, error),
) {
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
