package provider

import (
	"context"
	"sync/atomic"
	"time"
)

// Polling is what a provider offers, beside Provider, to processes that nobody hands records to: they fetch them, give them
// to the very handlers that a function gives its event's to, and delete those that did not fail.
//
// A hub's inbox is served by push or by poll, never by both: two that know nothing of each other would share out an
// instance's turns, and each would find its warm orchestrations behind. Nothing breaks by it, but most turns would be
// conflicts or cold. A work queue has no such memory, and may be both.
type Polling interface {
	Records

	// FetchRecords takes up to 10 records of a queue (QueueInbox, QueueTimers or a work queue) and locks them for the queue's
	// visibility timeout. It waits for the first: for up to 20 seconds, or a third of that timeout where it is less, and then
	// returns none. While records of an instance are locked no others of it are fetched, by anybody. Each has a Hold, which
	// never ends later than the lock.
	FetchRecords(ctx context.Context, queue string) ([]Record, error)
	// RenewRecords extends the locks of records to so long from now, and their Holds with them. Records whose lock is over
	// come back as lost, and their Holds are ended: somebody else may have them. A lock whose Hold is past is over, whatever
	// the queue says. A record's locks end 12 hours after it was fetched: beyond, a renewal is refused, and the lock stays as
	// it was. An error says nothing of records that did not come back as lost: until their Holds end they are still held.
	RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...Record) (lost []Record, err error)
}

// Hold is until when a record that was fetched is its holder's. Copies of the record share it, so that all see a renewal.
// It is safe for concurrent use.
type Hold struct {
	length time.Duration
	until  atomic.Int64 // Unix nanoseconds; 0: ended
}

// NewHold makes a hold of a record that is locked for so long from a moment that is not after its fetch.
func NewHold(from time.Time, length time.Duration) *Hold {
	h := &Hold{length: length}
	h.until.Store(from.Add(length).UnixNano())
	return h
}

// Length is for how long the record was locked when it was fetched.
func (h *Hold) Length() time.Duration { return h.length }

// Until is the deadline: long past for one that was ended.
func (h *Hold) Until() time.Time { return time.Unix(0, h.until.Load()) }

// Extend moves the deadline to so long after from. A hold that was ended stays so: Extend returns false.
func (h *Hold) Extend(from time.Time, length time.Duration) bool {
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

// End ends the hold for good: the record is deleted, given back or lost.
func (h *Hold) End() { h.until.Store(0) }

// Ended reports whether End was called.
func (h *Hold) Ended() bool { return h.until.Load() == 0 }

// LockedUntil is when the record's lock ends, as its holder knows; zero for one that was pushed, whose lock is not the
// receiver's to keep.
func (r *Record) LockedUntil() time.Time {
	if r.Hold == nil {
		return time.Time{}
	}
	return r.Hold.Until()
}

// Held reports whether the record is still its holder's. One that was pushed always is.
func (r *Record) Held(now time.Time) bool {
	return r.Hold == nil || now.Before(r.Hold.Until())
}

// EndHold ends the record's hold, if it has one.
func (r *Record) EndHold() {
	if r.Hold != nil {
		r.Hold.End()
	}
}

// LockedUntil is when the first of the locks of the item's records ends; zero when none of them has an end that is known.
func (it *OrchestrationItem) LockedUntil() (first time.Time) {
	for i := range it.Messages {
		if u := it.Messages[i].Record.LockedUntil(); !u.IsZero() && (first.IsZero() || u.Before(first)) {
			first = u
		}
	}
	return first
}
