package inline

import (
	"context"
	"sync"
	"time"
)

// reports passes the ends of activities from their goroutines to the session. The goroutines only call add and notify,
// which are safe for concurrent use.
type reports struct {
	// changed receives a value when an activity has ended. It is nil before the first one starts.
	changed chan struct{}
	timer   *time.Timer // of wait, for reuse; nil before the first wait

	mu         sync.Mutex
	activities []*activity // in the order of their ends
	ends       []end
}

// open prepares for the first activity.
func (r *reports) open() {
	if r.changed == nil {
		r.changed = make(chan struct{}, 1)
	}
}

// add is the last call of an activity's goroutine.
func (r *reports) add(a *activity, e end) {
	r.mu.Lock()
	r.activities, r.ends = append(r.activities, a), append(r.ends, e)
	r.mu.Unlock()
	r.notify()
}

// take removes and returns the reported activities and their ends.
func (r *reports) take() (all []*activity, ends []end) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, ends = r.activities, r.ends
	r.activities, r.ends = nil, nil
	return all, ends
}

// notify wakes the session.
func (r *reports) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// wait waits until an activity has ended, until the given time, or until ctx ends.
func (r *reports) wait(ctx context.Context, now, until time.Time) {
	if r.timer == nil {
		r.timer = time.NewTimer(until.Sub(now))
	} else {
		r.timer.Reset(until.Sub(now))
	}
	defer r.timer.Stop()
	select {
	case <-r.changed:
	case <-r.timer.C:
	case <-ctx.Done():
	}
}
