package simaws

import (
	"context"
	"sync"
)

// Serve runs the current mappings until ctx ends, each with up to Concurrency concurrent invocations. It does not poll.
// Invocations receive the end of ctx like the end of a function's environment. Serve returns after the last invocation
// has ended and its processed messages are deleted.
func (c *Cloud) Serve(ctx context.Context) {
	var running sync.WaitGroup

	for _, m := range c.all() {
		running.Go(func() { m.serve(ctx) })
	}

	running.Wait()
}

// serve runs the batches of a mapping.
func (m *mapping) serve(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()

	idle := make(chan []delivery)
	defer close(idle)

	alarm := newAlarm()

	for ctx.Err() == nil {
		if !m.acquire() {
			m.awaitIdle(ctx)

			continue
		}

		b := m.queue.receive(m.BatchSize, m.queue.VisibilityTimeout)
		if len(b.deliveries) > 0 {
			m.cloud.inFlight.Add(1)

			select {
			case idle <- b.deliveries: // a warm environment, with the stack of its goroutine
			default:
				running.Go(func() { m.environment(ctx, b.deliveries, idle) })
			}

			continue
		}

		m.running.Add(-1)

		if _, err := b.wait(ctx, m.cloud, alarm, nil); err != nil {
			return
		}
	}
}

// environment runs batches one after the other until the channel is closed.
func (m *mapping) environment(ctx context.Context, deliveries []delivery, more <-chan []delivery) {
	for ok := true; ok; deliveries, ok = <-more {
		m.run(ctx, deliveries)
	}
}

// awaitIdle waits until an invocation may start, or ctx ends.
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
