// Package collector collects the results of activities that run concurrently.
package collector

import (
	"slices"
	"sync"
	"time"
)

// linger is the time for which a result waits for others, which are then sent with one message and cause one turn.
const linger = 5 * time.Millisecond

// Batch is notified when its context ends while a Collector waits for results.
type Batch interface{ ContextEnded() }

// Collector collects the results of a number of activities. Init must be called first. One goroutine calls All, and
// any number of goroutines call Add.
type Collector[T any] struct {
	order   func(a, b T) int
	ended   <-chan struct{} // nil after the batch was notified
	batch   Batch
	changed chan struct{} // capacity 1

	mu      sync.Mutex
	running int
	results []T
}

// Init prepares a Collector for n results, which it sorts by order. All notifies b once if ended is closed while it
// waits for results.
func (c *Collector[T]) Init(n int, order func(a, b T) int, ended <-chan struct{}, b Batch) {
	c.order, c.ended, c.batch = order, ended, b
	c.changed, c.running, c.results = make(chan struct{}, 1), n, make([]T, 0, n)
}

// Add adds the result of an activity.
func (c *Collector[T]) Add(result T) {
	c.mu.Lock()
	c.running--
	c.results = append(c.results, result)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Running returns the number of activities without a result.
func (c *Collector[T]) Running() int {
	_, running := c.count()
	return running
}

// Done reports whether All has yielded all results.
func (c *Collector[T]) Done() bool {
	results, running := c.count()
	return results+running == 0
}

// Notified reports whether the batch was notified of the end of its context.
func (c *Collector[T]) Notified() bool { return c.ended == nil }

func (c *Collector[T]) count() (results, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.results), c.running
}

// take returns the results that were added, sorted, because concurrent activities add them in any order.
func (c *Collector[T]) take() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	results := c.results
	c.results = nil
	slices.SortStableFunc(results, c.order)
	return results
}

// All yields results as they are added, those within a few milliseconds together, until all activities have one.
func (c *Collector[T]) All(yield func([]T) bool) {
	for {
		switch results, running := c.count(); {
		case results > 0:
			if running > 0 {
				c.awaitAll(time.After(linger))
			}
			if !yield(c.take()) {
				return
			}
		case running > 0:
			c.await(nil)
		default:
			return
		}
	}
}

// awaitAll waits until no activity runs, or until the timeout.
func (c *Collector[T]) awaitAll(timeout <-chan time.Time) {
	for changed := true; changed; {
		if c.Running() == 0 {
			return
		}
		changed = c.await(timeout)
	}
}

// await waits for a change. It returns false after the timeout.
func (c *Collector[T]) await(timeout <-chan time.Time) (changed bool) {
	select {
	case <-c.changed:
	case <-timeout:
		return false
	case <-c.ended:
		c.ended = nil
		c.batch.ContextEnded()
	}
	return true
}
