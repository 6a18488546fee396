package cancelpoll

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

var errOutage = errors.New("outage")

// One poll per second is strongly consistent. The other polls are eventually consistent and end before the next
// strongly consistent poll.
func TestSchedule_oneStrongPollPerSecond(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var s schedule
	s.readBefore(now)
	s.add(250*time.Millisecond, now)
	var strong []time.Duration
	for range 12 {
		at := s.next
		if !s.isDue(at) || s.isDue(at.Add(-100*time.Millisecond)) {
			t.Fatalf("the poll at %v is not due", at)
		}
		if read := s.start(at, 1); read.consistency == provider.Strong {
			strong = append(strong, at.Sub(now))
		}
	}
	if len(strong) != 3 || strong[0] != time.Second || strong[2] != 3*time.Second {
		t.Errorf("strongly consistent polls after %v, want one per second", strong)
	}
}

// After a failure, the next poll is the next scheduled strongly consistent one. Only the first failure is reported.
func TestSchedule_pollFails_nextIsStronglyConsistent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var s schedule
	s.readBefore(now)
	s.add(250*time.Millisecond, now)
	s.start(s.next, 1)
	if s.finish(provider.Eventual, errOutage, now); !s.next.Equal(now.Add(StrongInterval)) {
		t.Errorf("after an eventually consistent poll: %v", s.next.Sub(now))
	}
	s.start(s.next, 1)
	if !s.finish(provider.Strong, errOutage, s.next) || s.finish(provider.Strong, errOutage, s.next) {
		t.Error("the first failure must be reported, and no other")
	}
}

// With many executions, the interval grows up to a second.
func TestSchedule_manyExecutions_areLessFrequent(t *testing.T) {
	t.Parallel()
	s := schedule{interval: 100 * time.Millisecond}
	for executions, want := range map[int]time.Duration{
		1: 100 * time.Millisecond, 50: 100 * time.Millisecond, 200: 400 * time.Millisecond, 10_000: time.Second,
	} {
		if got := s.nextInterval(executions); got != want {
			t.Errorf("%d executions: every %v, want %v", executions, got, want)
		}
	}
}

// The shortest requested interval applies, as long as an activity that requests it runs.
func TestSchedule_shortestIntervalApplies(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var s schedule
	s.add(time.Second, now)
	s.add(100*time.Millisecond, now)
	s.add(100*time.Millisecond, now)
	s.remove(100 * time.Millisecond)
	if s.interval != 100*time.Millisecond {
		t.Errorf("interval %v", s.interval)
	}
	if s.remove(100 * time.Millisecond); s.interval != time.Second {
		t.Errorf("interval %v after the activity ended", s.interval)
	}
	if s.remove(time.Second); s.interval != 0 || len(s.requests) != 0 {
		t.Errorf("interval %v without activities", s.interval)
	}
}
