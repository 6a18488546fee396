package work

import (
	"context"
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

// expect readies the collector for so many activities.
func (c *collector) expect(running int) {
	c.running, c.ends, c.changed = running, make([]finished, 0, running), make(chan struct{}, 1)
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

// results yields results as they come, those within a linger together, until all activities of a batch have ended. While it waits it has them
// told that the batch's context ends.
func (b *batch) results(yield func([]finished) bool) {
	c := &b.ended
	for {
		switch ends, running := c.look(); {
		case ends > 0:
			if running > 0 {
				b.awaitAll(time.After(linger))
			}
			if !yield(c.take()) {
				return
			}
		case running > 0:
			b.await(nil)
		default:
			return
		}
	}
}

// awaitAll returns when no activity is running any more, or at the given time.
func (b *batch) awaitAll(until <-chan time.Time) {
	for came := true; came; {
		if _, running := b.ended.look(); running == 0 {
			return
		}
		came = b.await(until)
	}
}

// await waits until something may have changed; false: it is the given time.
func (b *batch) await(until <-chan time.Time) (came bool) {
	select {
	case <-b.ended.changed:
	case <-until:
		return false
	case <-b.over:
		b.over = nil
		b.worker.manager.stopAll(b, endOf(b.ctx))
	}
	return true
}

// watched has the activities of a batch that still run told that its context ends, while results of others are sent. Most batches end at once, and need
// no such watch.
func (b *batch) watched() (release func() bool) {
	if _, running := b.ended.look(); running == 0 || b.over == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(b.ctx, func() { b.worker.manager.stopAll(b, endOf(b.ctx)) })
}
