package tally

import "github.com/perdure/perdure/internal/replay"

// Work describes the items of a Map.
type Work struct {
	Policy Policy
	Items  int
	// Process processes an item in its own scope.
	Process func(scope *replay.Context, item int) error
	// Ended is the reason for which the scope of an item ends after the item. Decided is the reason for which the
	// scopes of running items end when further results cannot change the error.
	Ended, Decided string
}

// Run processes the items in coroutines, until all of them have ended or no further one starts. It returns the number
// of items that were started, the cancellation of the others, and the error of the Map.
func Run(c *replay.Context, w Work) (started int, cancelled *replay.Cancellation, err error) {
	r := &run{Work: w, tally: New(w.Policy, w.Items), scope: c.WithCancel()}
	coroutines := make([]*replay.Task, min(w.Policy.Concurrency, w.Items))
	for i := range coroutines {
		coroutines[i] = c.Go(r.work)
	}
	c.WithoutCancel().AwaitAll(coroutines) // cancelled items end by themselves, once they have cleaned up

	cancelled = r.scope.Cancellation()
	r.scope.End(w.Ended)
	return r.tally.started, cancelled, r.tally.Err()
}

// run is a running Map.
type run struct {
	Work

	tally Tally           // excludes items that ended after the scope
	scope *replay.Context // of the items
}

// work processes one item after another.
func (r *run) work() {
	for r.scope.Cancellation() == nil {
		item, ok := r.tally.Start()
		if !ok {
			return
		}
		own := r.scope.WithCancel()
		err := r.Process(own, item)
		own.End(r.Ended)
		if r.scope.Cancellation() == nil && r.tally.Add(item, err) {
			r.scope.End(r.Decided)
		}
	}
}
