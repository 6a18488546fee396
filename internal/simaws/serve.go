package simaws

import (
	"context"
	"sync"
)

// Serve runs the mappings that exist when it is called until ctx ends, each with up to Concurrency invocations at once.
// Nothing polls. Invocations see the end of ctx, as a function sees the end of its environment; Serve returns when the
// last of them has ended, and has deleted what it finished.
func (c *Cloud) Serve(ctx context.Context) {
	var running sync.WaitGroup

	for _, m := range c.all() {
		running.Go(func() { m.serve(ctx) })
	}

	running.Wait()
}

// serve hands out the batches of one mapping.
func (m *mapping) serve(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()

	for ctx.Err() == nil {
		if !m.acquire() {
			m.awaitIdle(ctx)

			continue
		}

		b := m.queue.receive(m.BatchSize, m.queue.VisibilityTimeout)
		if len(b.deliveries) > 0 {
			m.cloud.inFlight.Add(1)
			running.Go(func() { m.run(ctx, b.deliveries) })

			continue
		}

		m.running.Add(-1)

		if _, err := b.wait(ctx, m.cloud, nil); err != nil {
			return
		}
	}
}

// awaitIdle returns when an invocation may be started, or ctx has ended.
func (m *mapping) awaitIdle(ctx context.Context) {
	m.mu.Lock()

	if !m.full() {
		m.mu.Unlock()

		return
	}

	if m.idle == nil {
		m.idle = make(chan struct{})
	}

	idle := m.idle
	m.mu.Unlock()

	select {
	case <-idle:
	case <-ctx.Done():
	}
}
