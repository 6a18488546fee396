package schedule

import (
	"slices"
	"time"
)

// queue has a run started for a time, as soon as it may.
func (k *keeper) queue(t time.Time) {
	if k.Queue = append(k.Queue, t); len(k.Queue) > MaxQueuedRuns {
		k.takeFirst()
		k.leaveOut(1, false)
	}
}

// leaveOut counts times for which there will be no run.
func (k *keeper) leaveOut(n int64, overlapped bool) {
	if overlapped {
		k.Counts.Skipped += n
	} else {
		k.Counts.Missed += n
	}
}

// takeFirst takes the time that has waited longest out of the queue.
func (k *keeper) takeFirst() time.Time {
	t := k.Queue[0]
	k.Queue = k.Queue[1:]
	if i := indexOf(k.Manual, t); i >= 0 {
		k.Manual = without(k.Manual, i)
	}
	return t
}

// takeByHand takes the first run out of the queue that was asked for by hand.
func takeByHand(k *keeper) (t time.Time, ok bool) {
	for i, t := range k.Queue {
		if j := indexOf(k.Manual, t); j >= 0 {
			k.Queue, k.Manual = without(k.Queue, i), without(k.Manual, j)
			return t, true
		}
	}
	return time.Time{}, false
}

// takeAll empties the queue.
func (k *keeper) takeAll() []time.Time {
	all := k.Queue
	k.Queue, k.Manual = nil, nil
	return all
}

// indexOf is where a time is among others; -1 where it is not.
func indexOf(all []time.Time, t time.Time) int { return slices.IndexFunc(all, t.Equal) }

// without is times without one of them.
func without(all []time.Time, i int) []time.Time { return slices.Delete(slices.Clone(all), i, i+1) }
