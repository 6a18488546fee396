package dispatch

import (
	"slices"
	"sync"
	"time"
)

// linger is how long an outcome waits for others of its batch to be sent with: one message, and one turn, for several.
const linger = 5 * time.Millisecond

// outcomes collects what activities that run side by side end with.
type outcomes struct {
	mu      sync.Mutex
	running int
	ends    []ended
	changed chan struct{} // capacity 1
}

// ended is a task and what became of it.
type ended struct {
	task *task
	ending
}

func newOutcomes(running int) *outcomes {
	return &outcomes{running: running, changed: make(chan struct{}, 1)}
}

func (o *outcomes) add(e ended) {
	o.mu.Lock()
	o.running--
	o.ends = append(o.ends, e)
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *outcomes) look() (ends, running int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ends), o.running
}

// take returns what has ended, in the order of the batch: those that end at one moment come in no order of their own.
func (o *outcomes) take() []ended {
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := o.ends
	o.ends = nil
	slices.SortStableFunc(ends, func(a, b ended) int { return a.task.index - b.task.index })
	return ends
}

// runs yields ends as they come, those within a linger together, until all activities have ended.
func (o *outcomes) runs() func(yield func([]ended) bool) {
	return func(yield func([]ended) bool) {
		for {
			ends, running := o.look()
			if ends > 0 {
				o.await(time.After(linger))
				if !yield(o.take()) {
					return
				}
				continue
			}
			if running == 0 {
				return
			}
			<-o.changed
		}
	}
}

// await returns when no activity is running any more, or at the given time.
func (o *outcomes) await(until <-chan time.Time) {
	for {
		if _, running := o.look(); running == 0 {
			return
		}
		select {
		case <-o.changed:
		case <-until:
			return
		}
	}
}
