// Package heartbeat implements the state of an activity's heartbeats: the timeout, and the details that are not written
// yet.
package heartbeat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// State is the heartbeat state of an activity in a worker. It is created on demand, because most activities have no
// heartbeats. The caller guards it with a lock.
type State struct {
	// last is the time of the last heartbeat, or of the start.
	last time.Time
	// expire ends the attempt when its heartbeat timeout expires. It is nil if there is no timeout.
	expire context.CancelCauseFunc
	// unwritten contains the newest details, of the time unwrittenAt, until the activity's record has them.
	unwritten   json.RawMessage
	unwrittenAt time.Time
	// writtenAt is the time of the last write, or of the start. writing is true during a write.
	writtenAt time.Time
	writing   bool
	// writer is a lock with a capacity of 1. It prevents writes of older details after newer ones. It is created on
	// demand.
	writer chan struct{}
	// dropped is true if details were dropped, and failing if the last write failed. Both prevent repeated warnings.
	dropped, failing bool
	// lastDetails are the details of an earlier attempt or delivery.
	lastDetails json.RawMessage
	// progressed is true if there were details that differ from lastDetails.
	progressed bool
}

// New returns the state of an activity that started at the given time.
func New(startedAt time.Time) *State { return &State{last: startedAt, writtenAt: startedAt} }

// NewWithDetails returns the state of an activity that has not started, with the details of an earlier attempt or
// delivery.
func NewWithDetails(details json.RawMessage) *State { return &State{lastDetails: details} }

// Start records the start of the activity. s may be nil.
func (s *State) Start(now time.Time) {
	if s != nil {
		s.last, s.writtenAt = now, now
	}
}

// Record records a heartbeat.
func (s *State) Record(now time.Time, details json.RawMessage) {
	s.last = now
	if len(details) == 0 {
		return
	}
	if s.writer == nil {
		s.writer = make(chan struct{}, 1)
	}
	s.unwritten, s.unwrittenAt = details, now
	s.progressed = s.progressed || !bytes.Equal(details, s.lastDetails)
}

// Drop records that details were dropped, and reports whether they are the first ones.
func (s *State) Drop() (first bool) {
	first = !s.dropped
	s.dropped = true
	return first
}

// Last returns the time of the last heartbeat, or of the start.
func (s *State) Last() time.Time { return s.last }

// LastDetails returns the details of an earlier attempt or delivery. s may be nil.
func (s *State) LastDetails() json.RawMessage {
	if s == nil {
		return nil
	}
	return s.lastDetails
}

// HasProgressed reports whether there were details that differ from the earlier ones. s may be nil.
func (s *State) HasProgressed() bool { return s != nil && s.progressed }

// Expect sets a function that ends the attempt when its heartbeat timeout expires.
func (s *State) Expect(expire context.CancelCauseFunc) { s.expire = expire }

// ExpireIfDue ends the attempt if its heartbeat timeout has expired. It returns the time of the next call.
func (s *State) ExpireIfDue(activity string, timeout time.Duration, now time.Time) (next time.Time) {
	if s.expire == nil {
		return time.Time{}
	}
	if due := s.last.Add(timeout); now.Before(due) {
		return due
	}
	s.expire(&perdure.TimeoutError{
		Message: fmt.Sprintf("activity %q: heartbeat timeout of %v expired", activity, timeout),
	})
	s.expire = nil
	return time.Time{}
}

// NextWrite returns the time of the next write of details. interval is the minimum interval between writes.
func (s *State) NextWrite(interval time.Duration) time.Time { return s.writtenAt.Add(interval) }

// NeedsWrite reports whether there are unwritten details and no write is running.
func (s *State) NeedsWrite() bool { return s.unwritten != nil && !s.writing }

// StartWrite records that a write has started.
func (s *State) StartWrite() { s.writing = true }

// EndWrite records that a write has ended.
func (s *State) EndWrite() { s.writing = false }

// Writer returns a lock for writes: a channel with a capacity of 1. It is nil if there were no details. s may be nil.
func (s *State) Writer() chan struct{} {
	if s == nil {
		return nil
	}
	return s.writer
}

// HasUnwritten reports whether there are unwritten details. s may be nil.
func (s *State) HasUnwritten() bool { return s != nil && s.unwritten != nil }

// Take returns the details for a write.
func (s *State) Take(activityID int64, now time.Time) provider.ActivityRecord {
	r := provider.ActivityRecord{ActivityID: activityID, Details: s.unwritten, LastHeartbeatAt: s.unwrittenAt}
	s.unwritten = nil
	s.writtenAt = now
	return r
}

// Written records the result of a write, and reports whether this is the first failure. The details of a failed write
// are written again, unless there are newer ones.
func (s *State) Written(r *provider.ActivityRecord, err error) (firstFailure bool) {
	firstFailure = err != nil && !s.failing
	if s.failing = err != nil; s.failing && s.unwritten == nil {
		s.unwritten, s.unwrittenAt = r.Details, r.LastHeartbeatAt
	}
	return firstFailure
}
