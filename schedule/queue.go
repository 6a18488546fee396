package schedule

import (
	"slices"
	"time"
)

// enqueue adds a time whose run starts as soon as possible.
func (s *State) enqueue(t time.Time) {
	if s.Queue = append(s.Queue, t); len(s.Queue) > MaxQueuedRuns {
		s.takeFirst()
		s.Counts.Missed++
	}
}

// countDropped counts n times that do not fit into the queue. overlapping is true if they were due during a run.
func (s *State) countDropped(n int64, overlapping bool) {
	if policy := s.Schedule.Overlap; overlapping && policy != OverlapQueue && policy != OverlapAllow {
		s.Counts.Skipped += n
	} else {
		s.Counts.Missed += n
	}
}

// takeFirst removes and returns the oldest time of the queue.
func (s *State) takeFirst() time.Time {
	t := s.Queue[0]
	s.Queue = s.Queue[1:]
	if i := indexOf(s.Manual, t); i >= 0 {
		s.Manual = without(s.Manual, i)
	}
	return t
}

// takeManual removes and returns the first time of the queue that was requested manually.
func (s *State) takeManual() (t time.Time, ok bool) {
	for i, t := range s.Queue {
		if j := indexOf(s.Manual, t); j >= 0 {
			s.Queue, s.Manual = without(s.Queue, i), without(s.Manual, j)
			return t, true
		}
	}
	return time.Time{}, false
}

// takeAll empties the queue and returns its times.
func (s *State) takeAll() []time.Time {
	all := s.Queue
	s.Queue, s.Manual = nil, nil
	return all
}

// catchUp handles a missed time. last is true for the last of several consecutive missed times.
func (s *State) catchUp(t time.Time, last bool) {
	switch {
	case s.Schedule.CatchUp == CatchUpAll:
		s.enqueue(t)
	case s.Schedule.CatchUp != CatchUpNone && last:
		if i := indexOf(s.Queue, s.CatchUpTime); i >= 0 { // enqueued by an earlier check during the pause
			s.Queue = without(s.Queue, i)
			s.Counts.Missed++
		}
		s.enqueue(t)
		s.CatchUpTime = t
	default:
		s.Counts.Missed++
	}
}

// overlapBackfill handles a time that was due during a run of a backfill. That run is not the previous run of the
// schedule, so it does not cause the time to be skipped, and is not cancelled. The time starts before other backfills.
func (s *State) overlapBackfill(t time.Time) {
	switch s.Schedule.Overlap {
	case OverlapQueue, OverlapAllow:
	case OverlapCancel:
		s.Counts.Skipped += int64(len(s.takeAll()))
	default:
		if len(s.Queue) > 0 {
			s.Counts.Skipped++
			return
		}
	}
	s.enqueue(t)
}

func indexOf(all []time.Time, t time.Time) int { return slices.IndexFunc(all, t.Equal) }

// without returns a copy of the times without the time at index i.
func without(all []time.Time, i int) []time.Time { return slices.Delete(slices.Clone(all), i, i+1) }
