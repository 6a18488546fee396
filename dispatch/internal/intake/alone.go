package intake

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// LongestWait is how long a suspect waits for its turn. What takes longer goes back to its queue: another batch may have room.
const LongestWait = LongestRetryDelay

// Alone is what a suspect holds while it runs: a process that polls has several batches in hand, and one suspect at a time.
type Alone struct {
	mu      sync.Mutex
	taken   bool
	waiting []*aloneWaiter // in the order of their locks, which does not depend on their arrival: one message may wait twice
}

type aloneWaiter struct {
	lock string
	turn chan struct{}
}

// NewAlone makes one that is free.
func NewAlone() *Alone { return &Alone{} }

// Take waits with a record until no other suspect runs in the process, or reports false when ctx ends or the time is up.
func (a *Alone) Take(ctx context.Context, r *provider.Record, up <-chan time.Time) bool {
	a.mu.Lock()
	if !a.taken {
		a.taken = true
		a.mu.Unlock()
		return true
	}
	w := &aloneWaiter{lock: r.ReceiptHandle, turn: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(a.waiting, w, func(x, y *aloneWaiter) int { return cmp.Compare(x.lock, y.lock) })
	a.waiting = slices.Insert(a.waiting, at, w)
	a.mu.Unlock()

	select {
	case <-w.turn:
		return true
	case <-up:
	case <-ctx.Done():
	}
	return !a.leave(w)
}

// leave takes a waiter out, or reports false: it has got its turn meanwhile.
func (a *Alone) leave(w *aloneWaiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, w)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return i >= 0
}

// Release hands it to the next that waits.
func (a *Alone) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken = len(a.waiting) > 0; a.taken {
		close(a.waiting[0].turn)
		a.waiting = a.waiting[1:]
	}
}

// InnocentFirst orders suspects: what has died least is most likely a neighbour of what kills, and the oldest has waited for longest.
func InnocentFirst(died, otherDied, deliveries, otherDeliveries int) int {
	return cmp.Or(cmp.Compare(died, otherDied), cmp.Compare(otherDeliveries, deliveries))
}

// DiedAlone is how many marks stand at least on what has died alone: the first one may have been a neighbour's doing. Of such one runs in
// an invocation. Several that kill, in one batch, would come back together each time, and use each other's deliveries up.
const DiedAlone = 2

// Spread is how long a record stays invisible that is not to come back together with others of its batch: as long as its deliveries
// say, and up to half as long more.
func Spread(r *provider.Record) time.Duration {
	h := fnv.New32a()
	of := r.ID
	if r.Group != "" {
		of = r.Group // which is invisible until all of it is visible
	}
	_, _ = fmt.Fprint(h, of, r.ReceiveCount)
	d := RetryDelay(r.ReceiveCount)
	return d + d/2*time.Duration(h.Sum32()%spreadSteps)/spreadSteps
}

const spreadSteps = 1000
