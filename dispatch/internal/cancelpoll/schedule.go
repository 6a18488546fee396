package cancelpoll

import (
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// StrongInterval is the interval of strongly consistent polls. It limits how late a cancellation is observed, however
// the eventually consistent polls fail. It is also the interval of an execution whose strongly consistent polls fail,
// and the longest interval in a process with many executions.
const StrongInterval = time.Second

const (
	// minEventualTimeout is the minimum time limit of an eventually consistent poll. The limit is otherwise the time
	// until the next strongly consistent poll, which can be too short for a call.
	minEventualTimeout = 250 * time.Millisecond
	// maxStrongTimeout is the time limit of a strongly consistent poll after one that took StrongInterval or longer.
	// Without it, no poll of a process with very little CPU would succeed.
	maxStrongTimeout = 5 * time.Second
	// fullRateExecutions is the number of executions that a process polls at their own intervals. With more executions,
	// the intervals grow up to StrongInterval, so that the number of reads is limited.
	fullRateExecutions = 50
)

// schedule determines the times and the consistency of the polls of one execution's cancel record.
type schedule struct {
	interval   time.Duration // the shortest requested interval; 0 if there is none
	requests   []request
	next       time.Time
	nextStrong time.Time // the latest time of the next strongly consistent poll
	started    time.Time // the last poll
	failing    bool      // the last strongly consistent poll failed
	slow       bool      // the last strongly consistent poll took StrongInterval or longer
}

// request counts the running activities that request the same interval.
type request struct {
	interval   time.Duration
	activities int
}

type pollRead struct {
	consistency provider.Consistency
	timeout     time.Duration
}

// readBefore records that the cancel record was read with strong consistency before an activity started at now.
func (s *schedule) readBefore(now time.Time) { s.nextStrong = now.Add(StrongInterval) }

func (s *schedule) add(interval time.Duration, now time.Time) {
	i := slices.IndexFunc(s.requests, func(r request) bool { return r.interval == interval })
	if i >= 0 {
		s.requests[i].activities++
	} else {
		s.requests = append(s.requests, request{interval, 1})
	}
	if s.interval == 0 || interval < s.interval {
		s.interval = interval
		s.next = intake.Earlier(s.next, now.Add(interval))
	}
}

func (s *schedule) remove(interval time.Duration) {
	s.requests = slices.DeleteFunc(s.requests, func(r request) bool {
		return r.interval == interval && r.activities == 1
	})
	s.interval = 0
	for i := range s.requests {
		r := &s.requests[i]
		if r.interval == interval {
			r.activities--
		}
		if s.interval == 0 || r.interval < s.interval {
			s.interval = r.interval
		}
	}
}

// isDue reports whether a poll is due within a tenth of the interval, so that polls of several executions share a
// timer.
func (s *schedule) isDue(now time.Time) bool { return !s.next.After(now.Add(s.interval / 10)) }

// start starts a poll in a process that polls a number of executions. The poll is strongly consistent if the poll after
// it would be later than nextStrong.
func (s *schedule) start(now time.Time, executions int) pollRead {
	s.started = now
	s.next = now.Add(s.nextInterval(executions))
	if !s.nextStrong.Before(s.next.Add(-s.interval / 10)) {
		return pollRead{provider.Eventual, max(s.nextStrong.Sub(now), minEventualTimeout)}
	}
	s.nextStrong = now.Add(StrongInterval)
	if s.slow {
		return pollRead{provider.Strong, maxStrongTimeout}
	}
	return pollRead{provider.Strong, min(max(s.interval, StrongInterval), maxStrongTimeout)}
}

// finish records the result of a poll. It reports whether this is the first strongly consistent poll that failed. After
// a failure, the next poll is the next scheduled poll with strong consistency, because earlier reads would also be
// throttled.
func (s *schedule) finish(c provider.Consistency, err error, now time.Time) (firstFailure bool) {
	if c == provider.Eventual {
		if err != nil && s.next.Before(s.nextStrong) {
			s.next = s.nextStrong
		}
		return false
	}
	firstFailure = err != nil && !s.failing
	s.slow = now.Sub(s.started) >= StrongInterval
	if s.failing = err != nil; s.failing {
		s.next = s.started.Add(max(s.interval, StrongInterval))
	}
	return firstFailure
}

// skip skips the next poll, because a lock renewal reads the cancel record with strong consistency.
func (s *schedule) skip(now time.Time, executions int) { s.next = now.Add(s.nextInterval(executions)) }

// renewed records that a lock renewal that started at the given time read the cancel record.
func (s *schedule) renewed(started time.Time) {
	if at := started.Add(StrongInterval); at.After(s.nextStrong) {
		s.nextStrong = at
	}
}

// pollNow makes a strongly consistent poll due immediately.
func (s *schedule) pollNow(now time.Time) { s.next, s.nextStrong = now, time.Time{} }

// nextInterval returns the time until the next poll in a process that polls a number of executions.
func (s *schedule) nextInterval(executions int) time.Duration {
	limited := s.interval * time.Duration(executions) / fullRateExecutions
	return max(s.interval, min(limited, StrongInterval))
}
