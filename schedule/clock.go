package schedule

import (
	"time"

	"github.com/perdure/perdure"
)

// lookAtTheClock takes in what has come due since the last look. What is computed from the clocks of the world is history: another release, or
// another database of time zones, replays what this one saw.
func (k *keeper) lookAtTheClock() {
	now := k.ctx.Now()
	d := perdure.SideEffect(k.ctx, func() due { return k.plan.between(k.Seen, now) })
	k.Seen, k.next = now, d.Next
	if k.Ending {
		return
	}

	busy := k.run != nil // until this moment, whether it is over now or not
	if n := d.Before; n > 0 {
		k.leaveOut(n, busy && k.Schedule.Overlap != Queue && k.Schedule.Overlap != Allow)
	}
	for i, t := range d.Times {
		switch {
		case busy:
			k.overlap(t)
		case now.Sub(t) > lateAfter:
			last := i == len(d.Times)-1 || now.Sub(d.Times[i+1]) <= lateAfter
			k.catchUp(t, last)
		default:
			k.queue(t)
		}
	}
}

// overlap deals with a time that came while a run was under way.
func (k *keeper) overlap(t time.Time) {
	switch k.Schedule.Overlap {
	case Queue, Allow:
		k.queue(t)
	case Cancel:
		k.leaveOut(int64(len(k.takeAll())), true)
		k.queue(t)
		k.cancelRun()
	default:
		k.leaveOut(1, true)
	}
}

// catchUp deals with a time that was missed: last says whether it is the last that was.
func (k *keeper) catchUp(t time.Time, last bool) {
	switch {
	case k.Schedule.CatchUp == CatchUpAll, k.Schedule.CatchUp != CatchUpNone && last:
		k.queue(t)
	default:
		k.leaveOut(1, false)
	}
}
