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

// LongestWait is the maximum time for which a suspect waits to run. The record is then released to the queue, and
// another batch may have capacity.
const LongestWait = LongestRetryDelay

// Alone is a lock that lets one suspect at a time run in a process. A suspect is a record with crash markers. A polling
// process handles several batches concurrently.
type Alone struct {
	mu      sync.Mutex
	taken   bool
	waiting []*aloneWaiter // sorted by their locks instead of arrival, because a message may wait twice
}

type aloneWaiter struct {
	lock string
	turn chan struct{}
}

// NewAlone returns an unlocked Alone.
func NewAlone() *Alone { return &Alone{} }

// Take waits until no other suspect runs in the process and takes the lock. It returns false if ctx ends or up fires
// first.
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

// leave removes a waiter. It returns false if the waiter has received its turn in the meantime.
func (a *Alone) leave(w *aloneWaiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, w)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return i >= 0
}

// Release passes the lock to the next waiting suspect.
func (a *Alone) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken = len(a.waiting) > 0; a.taken {
		close(a.waiting[0].turn)
		a.waiting = a.waiting[1:]
	}
}

// CompareSuspects compares two suspects for sorting. A suspect with fewer crash markers comes first, because another
// record of its batch is more likely to have caused the crash. With equal markers, the suspect with more deliveries
// comes first.
func CompareSuspects(crashCount, otherCrashCount, deliveries, otherDeliveries int) int {
	return cmp.Or(cmp.Compare(crashCount, otherCrashCount), cmp.Compare(otherDeliveries, deliveries))
}

// CrashedAlone is the minimum number of crash markers of a record that crashed its process while it ran alone. The
// first marker can come from a record that ran at the same time. An invocation runs at most one record with this number
// of markers. Otherwise, several records that crash their process would be redelivered together each time and use up
// each other's deliveries.
const CrashedAlone = 2

// SpreadDelay returns the delay of a record that must not be redelivered together with others of its batch. The delay
// is its RetryDelay, extended by up to half.
func SpreadDelay(r *provider.Record) time.Duration {
	h := fnv.New32a()
	of := r.ID
	if r.Group != "" {
		of = r.Group // a group is invisible until all of its records are visible
	}
	_, _ = fmt.Fprint(h, of, r.ReceiveCount)
	d := RetryDelay(r.ReceiveCount)
	return d + d/2*time.Duration(h.Sum32()%spreadSteps)/spreadSteps
}

const spreadSteps = 1000
