package settlements

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// reader returns settlements and counts its reads.
type reader struct {
	mu    sync.Mutex
	reads []int64 // the first segment of each read
	next  provider.Settlements
	err   error
}

func (r *reader) ReadSettled(_ context.Context, _ string, from int64) (provider.Settlements, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, from)
	return r.next, r.err
}

func item(activityID int64, waits bool) *provider.WorkItem {
	return &provider.WorkItem{ExecutionID: "x", ActivityID: activityID, Segment: 2, WaitForCancellation: waits}
}

// Work items of one execution share a read, and an ended activity is not read again.
func TestSharedRead_severalWorkItems_readOnce(t *testing.T) {
	t.Parallel()
	c, s := NewCache(), NewSharedRead(t.Context())
	r := &reader{next: provider.Settlements{
		IDs: []history.Range{{First: 1, Last: 1}}, Cancelled: []history.Range{{First: 3, Last: 4}}, Next: 5,
	}}
	for _, want := range []struct {
		item  *provider.WorkItem
		ended bool
	}{{item(1, false), true}, {item(2, false), false}, {item(3, false), true}, {item(4, true), false}} {
		ended, deleted, err := s.Ended(t.Context(), c, r, want.item)
		if ended != want.ended || deleted || err != nil {
			t.Errorf("activity %d: ended %v, deleted %v, %v", want.item.ActivityID, ended, deleted, err)
		}
	}
	if len(r.reads) != 1 || r.reads[0] != 2 {
		t.Errorf("reads from segments %v, want one from 2", r.reads)
	}
	if _, _, err := NewSharedRead(t.Context()).Ended(t.Context(), c, r, item(2, false)); err != nil || r.reads[1] != 5 {
		t.Errorf("later reads from segments %v, want 5: %v", r.reads, err)
	}
}

// If the segment of an activity does not exist, its execution has ended. All work items receive the error of a read.
func TestSharedRead_segmentIsGone_hasEnded(t *testing.T) {
	t.Parallel()
	r := &reader{next: provider.Settlements{Next: 2}}
	ended, deleted, err := NewSharedRead(t.Context()).Ended(t.Context(), NewCache(), r, item(1, true))
	if !ended || !deleted || err != nil {
		t.Errorf("ended %v, deleted %v, %v", ended, deleted, err)
	}
	failed, s := &reader{err: errors.New("outage")}, NewSharedRead(t.Context())
	for range 2 {
		if ended, _, err := s.Ended(t.Context(), NewCache(), failed, item(1, true)); ended || err == nil {
			t.Errorf("ended %v, error %v", ended, err)
		}
	}
}
