package peers

import (
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/bench/workload"
)

// tally counts the calls to a store and adds up their time.
type tally struct{ calls, nanos atomic.Int64 }

// add counts a call that began at the given time and has ended.
func (t *tally) add(began time.Time) {
	t.calls.Add(1)
	t.nanos.Add(int64(time.Since(began)))
}

// call makes a call and counts it.
func (t *tally) call(do func() error) error {
	defer t.add(time.Now())
	return do()
}

// Store returns the counts.
func (t *tally) Store() workload.Store {
	return workload.Store{Calls: t.calls.Load(), Time: time.Duration(t.nanos.Load())}
}
