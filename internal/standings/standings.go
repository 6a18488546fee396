// Package standings caches which activities of an execution have ended, so that checks of many activities of one
// execution do not each read its history. Each check reads only the segments that were committed since the last one.
package standings

import (
	"container/list"
	"context"
	"sync"

	"github.com/perdure/perdure/provider"
)

// kept is of how many executions it is remembered what they have settled.
const kept = 64

// Reader reads the settlements of an execution.
type Reader interface {
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
}

// Standings holds the Standing of the executions that were checked last. It is safe for concurrent use.
type Standings struct {
	mu    sync.Mutex
	order list.List // of *Standing; front: the most recent
	by    map[string]*list.Element
}

// New returns empty Standings.
func New() *Standings { return &Standings{by: map[string]*list.Element{}} }

// Of returns the Standing of an execution.
func (s *Standings) Of(executionID string) *Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.by[executionID]
	if el == nil {
		el = s.order.PushFront(&Standing{executionID: executionID, absent: -1})
		s.by[executionID] = el
		if s.order.Len() > kept {
			last, _ := s.order.Remove(s.order.Back()).(*Standing)
			delete(s.by, last.executionID)
		}
	}
	s.order.MoveToFront(el)
	x, _ := el.Value.(*Standing)
	return x
}

// Standing is the known state of one execution. It is safe for concurrent use.
type Standing struct {
	executionID string

	mu            sync.Mutex // not held while anything is read
	known         bool
	first, next   int64 // the segments that were read: from first up to before next
	settled       provider.IDSet
	cancelled     provider.IDSet
	over, deleted bool
	absent        int64 // the segment that the last look did not find; -1: it found its own
}

// Known is the known state of an activity.
type Known struct {
	// Read is true if the history was read from the segment that scheduled the activity. If it is false, the activity
	// may have ended even if Settled is false.
	Read bool
	// Settled means that the activity has ended, Cancelled that its cancellation was requested.
	Settled, Cancelled bool
	// Over means that the execution has ended, Deleted that the instance is also deleted.
	Over, Deleted bool
}

// Of returns the known state of an activity that a segment scheduled, and of its execution.
func (x *Standing) Of(activityID, segment int64) Known {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone := x.absent >= 0 && segment >= x.absent
	return Known{
		Read: gone || x.known && segment >= x.first, Settled: x.settled.Has(activityID), Cancelled: x.cancelled.Has(activityID),
		Over: x.over || gone, Deleted: x.deleted || gone,
	}
}

// Look reads the segments that were committed since the last call. If segment is before all segments that were read,
// Look reads from that segment.
func (x *Standing) Look(ctx context.Context, r Reader, segment int64) error {
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
	if first && got.Next == from && !got.Deleted { // the segment that scheduled the activity is gone, or is not there yet
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
	x.over, x.deleted = x.over || got.Ended, x.deleted || got.Deleted
	return nil
}
