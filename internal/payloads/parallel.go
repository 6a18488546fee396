package payloads

import "sync"

// concurrency is the number of concurrent calls of the payload store. A write takes about 30 ms, and a payload has up
// to 32 MiB.
const concurrency = 16

// calls makes calls, some of them concurrently. It stores the first error, and starts no calls after an error.
type calls struct {
	running sync.WaitGroup
	slots   chan struct{}
	mu      sync.Mutex
	err     error
}

// do makes a call, in another goroutine if concurrent is true.
func (c *calls) do(concurrent bool, call func() error) {
	if c.firstError() != nil {
		return
	}
	if !concurrent {
		c.add(call())
		return
	}
	if c.slots == nil {
		c.slots = make(chan struct{}, concurrency)
	}
	c.slots <- struct{}{}
	c.running.Go(func() {
		defer func() { <-c.slots }()
		c.add(call())
	})
}

func (c *calls) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *calls) firstError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// wait waits for all calls and returns the first error.
func (c *calls) wait() error {
	c.running.Wait()
	return c.firstError()
}
