package activities

import (
	"context"
	"sync"
)

// background runs calls in the background of a batch: lease renewals, and writes of heartbeats and records. The calls
// end with the batch. After the batch, its records are deleted or belong to another worker, and a frozen function would
// continue the calls minutes later. Reads of cancel records are not background calls, because several batches share the
// reads.
type background struct {
	ctx   context.Context //nolint:containedctx // the batch's context without its end, for renewals in the grace period
	stop  context.CancelFunc
	calls sync.WaitGroup
}

// inBackground calls f in a new goroutine, with a context that ends with the batch. It does nothing if the batch has
// ended. The supervisor's lock is held.
func (s *supervisor) inBackground(b *batch, f func(ctx context.Context)) {
	if !s.batches[b] {
		return
	}
	bg := &b.background
	if bg.ctx == nil { // most batches have no background calls
		bg.ctx, bg.stop = context.WithCancel(context.WithoutCancel(b.ctx))
	}
	bg.calls.Go(func() { f(bg.ctx) })
}

// concurrently calls do for the elements that match, concurrently, and waits for the calls.
func concurrently[T any](all []T, matches func(T) bool, do func(*T)) {
	var running sync.WaitGroup
	for i := range all {
		if matches(all[i]) {
			running.Go(func() { do(&all[i]) })
		}
	}
	running.Wait()
}

// end ends the background calls of a batch and waits for them.
func (bg *background) end() {
	if bg.ctx != nil {
		bg.stop()
		bg.calls.Wait()
	}
}
