package provider

import (
	"context"
	"sync/atomic"
	"time"
)

// Polling is what a provider offers, beside Provider, to processes that receive no records from a function's event:
// they fetch records, pass them to the same handlers that a function uses, and delete those that did not fail.
//
// A hub's inbox is served by push or by poll, never by both: two consumers that know nothing of each other would share
// an instance's turns, and each would find its warm orchestrations outdated. Nothing would break, but most turns would
// be conflicts or cold. A work queue has no such memory, and may be served by both.
type Polling interface {
	Records

	// FetchRecords takes up to 10 records of a queue (QueueInbox, QueueTimers or a work queue) and locks them for the
	// queue's visibility timeout, or for less: a timer whose process dies is to be late by seconds alone. It waits for the first record for up to 20 seconds, or a third of that timeout where
	// that is less, and then returns none. While records of an instance are locked, no caller can fetch others of it.
	// Each record has a Hold, which never ends later than the lock.
	FetchRecords(ctx context.Context, queue string) ([]Record, error)
	// RenewRecords extends the locks of records to lock from now, and their Holds with them. It returns the records
	// whose lock is over as lost, and ends their Holds: another process may have them. A lock whose Hold is past is
	// over, whatever the queue says. A record's locks end 12 hours after it was fetched: beyond that a renewal is
	// refused, and the lock stays as it was. An error does not concern the records that are not returned as lost: they
	// are still held until their Holds end.
	RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...Record) (lost []Record, err error)
}

// Hold is how long its holder may rely on a fetched record's lock. Copies of the record share it, so that each of them
// has a renewal. It is safe for concurrent use.
type Hold struct {
	length time.Duration
	until  atomic.Int64 // Unix nanoseconds; 0: ended
}

// NewHold makes the hold of a record whose lock has the given length. from must not be after the moment at which the
// record was fetched.
func NewHold(from time.Time, length time.Duration) *Hold {
	h := &Hold{length: length}
	h.until.Store(from.Add(length).UnixNano())
	return h
}

// Length returns how long the record was locked when it was fetched.
func (h *Hold) Length() time.Duration { return h.length }

// Until returns the deadline; one long past for a hold that was ended.
func (h *Hold) Until() time.Time { return time.Unix(0, h.until.Load()) }

// Extend moves the deadline to length after from. It returns false, and changes nothing, for a hold that was ended.
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

// End ends the hold for good: the record was deleted, given back or lost.
func (h *Hold) End() { h.until.Store(0) }

// Ended reports whether End was called.
func (h *Hold) Ended() bool { return h.until.Load() == 0 }

// LockedUntil returns when the record's lock ends, as far as its holder knows; zero for a record that was pushed, whose
// lock the receiver does not control.
func (r *Record) LockedUntil() time.Time {
	if r.Hold == nil {
		return time.Time{}
	}
	return r.Hold.Until()
}

// Held reports whether the record is still its holder's. A record that was pushed always is.
func (r *Record) Held(now time.Time) bool {
	return r.Hold == nil || now.Before(r.Hold.Until())
}

// EndHold ends the record's hold, if it has one.
func (r *Record) EndHold() {
	if r.Hold != nil {
		r.Hold.End()
	}
}

// LockedUntil returns when the first of the locks of the item's records ends; zero when none has a known end.
func (it *OrchestrationItem) LockedUntil() (first time.Time) {
	for i := range it.Messages {
		if u := it.Messages[i].Record.LockedUntil(); !u.IsZero() && (first.IsZero() || u.Before(first)) {
			first = u
		}
	}
	return first
}
