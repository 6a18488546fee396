package work

import (
	"slices"
	"sync"
	"time"
)

// linger is how long an outcome waits for others of its batch to be sent with: one message, and one turn, for several.
const linger = 5 * time.Millisecond

// collector collects the results of activities that run side by side.
type collector struct {
	mu      sync.Mutex
	running int
	ends    []finished
	changed chan struct{} // capacity 1
}

func newCollector(running int) *collector {
	return &collector{running: running, changed: make(chan struct{}, 1)}
}

func (c *collector) add(e finished) {
	c.mu.Lock()
	c.running--
	c.ends = append(c.ends, e)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *collector) look() (ends, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ends), c.running
}

// over reports whether all results were taken.
func (c *collector) over() bool {
	ends, running := c.look()
	return ends+running == 0
}

// take returns the results that have come, in the order of the batch: those of one moment come in no order of their own.
func (c *collector) take() []finished {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := c.ends
	c.ends = nil
	slices.SortStableFunc(ends, func(a, b finished) int { return a.task.index - b.task.index })
	return ends
}

// all yields results as they come, those within a linger together, until all activities have ended.
func (c *collector) all() func(yield func([]finished) bool) {
	return func(yield func([]finished) bool) {
		for {
			switch ends, running := c.look(); {
			case ends > 0:
				if running > 0 {
					c.await(time.After(linger))
				}
				if !yield(c.take()) {
					return
				}
			case running > 0:
				<-c.changed
			default:
				return
			}
		}
	}
}

// await returns when no activity is running any more, or at the given time.
func (c *collector) await(until <-chan time.Time) {
	for {
		if _, running := c.look(); running == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-until:
			return
		}
	}
}
