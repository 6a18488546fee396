package peers

import (
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/bench/workload"
)

// tally counts the calls to a store, and their time.
type tally struct{ calls, nanos atomic.Int64 }

// add notes a call that began at a time.
func (t *tally) add(began time.Time) {
	t.calls.Add(1)
	t.nanos.Add(int64(time.Since(began)))
}

// call makes a call, and notes it.
func (t *tally) call(do func() error) error {
	defer t.add(time.Now())
	return do()
}

// Store is what was counted.
func (t *tally) Store() workload.Store {
	return workload.Store{Calls: t.calls.Load(), Time: time.Duration(t.nanos.Load())}
}
