package work

import (
	"context"
	"sync"
)

// beside is what is done beside the activities of a batch: leases and runs are renewed, details and sightings are written. It ends with the batch,
// whatever is under way: the records are done with then, or are another's, and a function that returns is frozen in the midst of its calls, to
// go on with them minutes later. Reads may be left behind, as those of cancel records are, which the executions of other batches share.
type beside struct {
	ctx   context.Context //nolint:containedctx // of the batch, without its end: in the grace, too, there is something to renew
	stop  context.CancelFunc
	calls sync.WaitGroup
}

// beside has f called on a goroutine of its own, with a context that ends with the batch. It does nothing once the batch is over. The manager's lock is
// held.
func (m *manager) beside(b *batch, f func(ctx context.Context)) {
	if !m.batches[b] {
		return
	}
	s := &b.beside
	if s.ctx == nil { // most batches have nothing beside them
		s.ctx, s.stop = context.WithCancel(context.WithoutCancel(b.ctx))
	}
	s.calls.Go(func() { f(s.ctx) })
}

// end ends what is done beside a batch that is left, and waits for it.
func (s *beside) end() {
	if s.ctx != nil {
		s.stop()
		s.calls.Wait()
	}
}
