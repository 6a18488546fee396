package schedule

import "time"

// queue has a run started for a time, as soon as it may.
func (k *keeper) queue(t time.Time) {
	if k.Queue = append(k.Queue, t); len(k.Queue) > MaxQueued {
		k.Queue = k.Queue[1:]
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
	return t
}

// takeAll empties the queue.
func (k *keeper) takeAll() []time.Time {
	all := k.Queue
	k.Queue = nil
	return all
}
