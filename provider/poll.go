package provider

import (
	"context"
	"sync/atomic"
	"time"
)

// Poller is an optional interface of a Provider for processes outside Lambda. Such a process receives records, passes
// them to the same handlers as a function, and deletes the records that did not fail.
//
// Process a hub's inbox either by push or by polling, but not by both, because then most turns would conflict or need a
// replay. Work queues can be processed by both.
type Poller interface {
	Records

	// FetchRecords receives up to 10 records of a queue (QueueInbox, QueueTimers or a work queue) and locks them for at
	// most the queue's visibility timeout. The locks of timers are shorter, so that timers are only seconds late if the
	// process dies. FetchRecords waits for the first record for up to 20 seconds, or a third of the visibility timeout
	// if that is less. If no record arrives, it returns an empty slice. While records of an instance are locked, no
	// caller receives other records of the same instance. Each record has a Hold that ends no later than the lock.
	FetchRecords(ctx context.Context, queue string) ([]Record, error)
	// RenewRecords extends the locks and Holds of records so that they expire after the duration lock from now. It
	// returns the records whose lock has expired as lost and ends their Holds, because another process may have
	// received them. A lock whose Hold has expired counts as lost. A record can be locked for at most 12 hours from its
	// receipt. A renewal beyond this limit fails and does not change the lock. After an error, records that are not
	// returned as lost stay locked until their Holds end.
	RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...Record) (lost []Record, err error)
}

// LockHold is the time for which the holder of a received record can rely on its lock. Copies of the record share the
// Hold. It is safe for concurrent use.
type LockHold struct {
	length time.Duration
	until  atomic.Int64 // Unix nanoseconds; 0 means ended
}

// NewHold returns the Hold of a record with a lock that starts at from and has the given length. from must not be later
// than the receipt of the record.
func NewHold(from time.Time, length time.Duration) *LockHold {
	h := &LockHold{length: length}
	h.until.Store(from.Add(length).UnixNano())
	return h
}

// Length returns the length of the lock at the receipt of the record.
func (h *LockHold) Length() time.Duration { return h.length }

// Until returns the deadline of the Hold. If the Hold was ended, the deadline is far in the past.
func (h *LockHold) Until() time.Time { return time.Unix(0, h.until.Load()) }

// Extend sets the deadline to length after from and returns true. If the Hold was ended, Extend has no effect and
// returns false.
func (h *LockHold) Extend(from time.Time, length time.Duration) bool {
	to := from.Add(length).UnixNano()
	for {
		was := h.until.Load()
		if was == 0 {
			return false
		}
		if h.until.CompareAndSwap(was, to) {
			return true
		}
	}
}

// End ends the Hold permanently, because the record was deleted, released or lost.
func (h *LockHold) End() { h.until.Store(0) }

// Ended reports whether End was called.
func (h *LockHold) Ended() bool { return h.until.Load() == 0 }

// LockedUntil returns the time at which the record's lock expires, as far as its holder knows. The time is zero for a
// record that was pushed.
func (r *Record) LockedUntil() time.Time {
	if r.Hold == nil {
		return time.Time{}
	}
	return r.Hold.Until()
}

// Held reports whether the record is still locked. It returns true for a record that was pushed.
func (r *Record) Held(now time.Time) bool {
	return r.Hold == nil || now.Before(r.Hold.Until())
}

// EndHold ends the record's Hold if it has one.
func (r *Record) EndHold() {
	if r.Hold != nil {
		r.Hold.End()
	}
}
