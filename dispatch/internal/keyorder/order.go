// Package keyorder runs the records of one message group in a batch one after another, in their order (R29). The
// records of a group have the same exclusive key.
package keyorder

import (
	"context"
	"sync"
	"sync/atomic"
)

// Counter counts running records.
type Counter interface{ AddBusy(n int) }

// Order decides when the records of a batch start. A record starts after the record before it was deleted or resent. If
// the record before it was released, all later records of the group are released too, because a FIFO queue preserves
// their order.
type Order struct {
	mu      sync.Mutex
	counter Counter
}

// Init sets the counter. The Order counts a record when it decides whether the record starts.
func (o *Order) Init(c Counter) { o.counter = c }

// Place is the position of a record in its group. The lock of the Order guards it.
type Place struct {
	next *Place // nil if there is none
	// turn is closed when the Order has decided whether the record starts. It is nil for the first record of a group.
	turn              chan struct{}
	decided, released bool
	// waiting is true until the decision. It is atomic because it is read without the lock.
	waiting  atomic.Bool
	mayCrash bool
}

// Link sets the places of the records of a batch by their groups, and returns the number of records that wait for
// another one. Records without a group do not wait. mayCrash reports whether a record may crash the process.
func Link[T any](
	records []T, place func(*T) *Place, group func(*T) string, mayCrash func(*T) bool,
) (waiting int) {
	if group(&records[0]) == "" {
		return 0
	}
	last := map[string]*Place{}
	crashingGroups := map[string]bool{}
	for i := range records {
		g, p := group(&records[i]), place(&records[i])
		crashingGroups[g] = crashingGroups[g] || mayCrash(&records[i])
		if previous := last[g]; previous != nil {
			previous.next = p
			p.turn = make(chan struct{})
			p.waiting.Store(true)
			waiting++
		}
		last[g] = p
	}
	for i := range records {
		place(&records[i]).mayCrash = crashingGroups[group(&records[i])]
	}
	return waiting
}

// IsFirst reports whether the record never waits.
func (p *Place) IsFirst() bool { return p.turn == nil }

// IsWaiting reports whether the record waits for another one.
func (p *Place) IsWaiting() bool { return p.waiting.Load() }

// MayCrash reports whether a record of the group may crash the process.
func (p *Place) MayCrash() bool { return p.mayCrash }

// WasReleased reports whether the record was released because an earlier record of its group was released.
func (p *Place) WasReleased() bool { return p.released }

// Await waits for the records before a place. It returns false if the record must be released or ctx ends.
func (o *Order) Await(ctx context.Context, p *Place) bool {
	select {
	case <-p.turn:
	case <-ctx.Done():
		o.mu.Lock()
		if !p.decided {
			o.decide(p, true)
		}
		o.mu.Unlock()
	}
	return !p.released
}

// decide ends the wait of a record. The lock is held.
func (o *Order) decide(p *Place, release bool) {
	p.decided, p.released = true, release
	p.waiting.Store(false)
	o.counter.AddBusy(1)
	close(p.turn)
}

// Pass lets the record after a place start, or releases all later records of the group.
func (o *Order) Pass(p *Place, release bool) {
	if p.next == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for next := p.next; next != nil; next = next.next {
		if !next.decided {
			o.decide(next, release)
		}
		if !release {
			return
		}
	}
}
