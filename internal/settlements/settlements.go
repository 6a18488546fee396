// Package settlements caches the ended activities of executions, so that checks of many activities of one execution do
// not each read its history. Each check reads only the segments that were committed since the previous check.
package settlements

import (
	"container/list"
	"context"
	"sync"

	"github.com/perdure/perdure/internal/idset"
	"github.com/perdure/perdure/provider"
)

// maxExecutions is the number of executions that a Cache holds.
const maxExecutions = 64

// Reader reads the settlements of an execution.
type Reader interface {
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
}

// Cache holds the executions that were checked last. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	order list.List // of *Execution; front: the most recent
	byID  map[string]*list.Element
}

// NewCache returns an empty Cache.
func NewCache() *Cache { return &Cache{byID: map[string]*list.Element{}} }

// Execution returns the cached state of an execution.
func (c *Cache) Execution(executionID string) *Execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byID[executionID]
	if el == nil {
		el = c.order.PushFront(&Execution{executionID: executionID, absent: -1})
		c.byID[executionID] = el
		if c.order.Len() > maxExecutions {
			last, _ := c.order.Remove(c.order.Back()).(*Execution)
			delete(c.byID, last.executionID)
		}
	}
	c.order.MoveToFront(el)
	x, _ := el.Value.(*Execution)
	return x
}

// Execution is the cached state of one execution. It is safe for concurrent use.
type Execution struct {
	executionID string

	mu             sync.Mutex // not held during reads
	known          bool
	first, next    int64 // the segments that were read: from first up to before next
	settled        idset.Set
	cancelled      idset.Set
	ended, deleted bool
	absent         int64 // the segment that the last read did not find, or -1
}

// Activity is the cached state of an activity.
type Activity struct {
	// Read is true if the history was read from the segment that scheduled the activity. If it is false, the activity
	// may have ended even if Settled is false.
	Read bool
	// Settled means that the activity has ended. Cancelled means that its cancellation was requested.
	Settled, Cancelled bool
	// ExecutionEnded means that the execution has ended. Deleted means that the instance is also deleted.
	ExecutionEnded, Deleted bool
}

// Activity returns the cached state of an activity that a segment scheduled, and of its execution.
func (x *Execution) Activity(activityID, segment int64) Activity {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone := x.absent >= 0 && segment >= x.absent
	return Activity{
		Read:    gone || x.known && segment >= x.first,
		Settled: x.settled.Has(activityID), Cancelled: x.cancelled.Has(activityID),
		ExecutionEnded: x.ended || gone, Deleted: x.deleted || gone,
	}
}

// Read reads the segments that were committed since the last call. If segment is before all segments that were read,
// Read reads from that segment.
func (x *Execution) Read(ctx context.Context, r Reader, segment int64) error {
	x.mu.Lock()
	from, first := x.next, !x.known || segment < x.first
	if first {
		from = segment
	}
	x.mu.Unlock()
	got, err := r.ReadSettled(ctx, x.executionID, from)
	if err != nil {
		return err
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	x.absent = -1
	if first && got.Next == from && !got.Deleted { // the scheduling segment is deleted or not committed
		x.absent = from
		return nil
	}
	if first && (!x.known || from < x.first) {
		x.first = from
	}
	for _, r := range got.IDs {
		x.settled = x.settled.Add(r)
	}
	for _, r := range got.Cancelled {
		x.cancelled = x.cancelled.Add(r)
	}
	x.known, x.next = true, max(x.next, got.Next)
	x.ended, x.deleted = x.ended || got.Ended, x.deleted || got.Deleted
	return nil
}
