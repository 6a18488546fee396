package schedule

import (
	"time"

	"github.com/perdure/perdure"
)

// lookAtTheClock takes in what has come due since the last look. What is computed from the clocks of the world is history: another release, or
// another database of time zones, replays what this one saw.
func (k *keeper) lookAtTheClock(ctx *perdure.OrchestrationContext) {
	now := ctx.Now()
	d := perdure.SideEffect(ctx, func() due { return k.plan.between(k.ProcessedUntil, now) })
	k.ProcessedUntil, k.next = now, d.Next
	if k.Deleting {
		return
	}

	if n := d.Before; n > 0 {
		k.leaveOut(n, overlaps(k, d.Times[0]) && k.Schedule.Overlap != OverlapQueue && k.Schedule.Overlap != OverlapAllow)
	}
	missed := func(t time.Time) bool { return k.Paused != nil || !overlaps(k, t) && now.Sub(t) > lateAfter }
	for i, t := range d.Times {
		switch {
		case overlaps(k, t):
			k.overlap(t)
		case missed(t):
			k.catchUp(t, i == len(d.Times)-1 || !missed(d.Times[i+1]))
		default:
			k.queue(t)
		}
	}
	if k.Paused == nil {
		k.CatchUpTime = time.Time{}
	}
}

// overlaps reports whether a time came while the run was under way that is, or was until this moment, and that is looked for: a pause keeps the times that come
// meanwhile, and a run by hand that began in it is not the run before them.
func overlaps(k *keeper, t time.Time) bool {
	return k.run != nil && k.Paused == nil && t.After(k.run.StartedAt)
}

// overlap deals with a time that came while a run was under way.
func (k *keeper) overlap(t time.Time) {
	if k.run != nil && k.run.past {
		overlapPast(k, t)
		return
	}
	switch k.Schedule.Overlap {
	case OverlapQueue, OverlapAllow:
		k.queue(t)
	case OverlapCancel:
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
	case k.Schedule.CatchUp == CatchUpAll:
		k.queue(t)
	case k.Schedule.CatchUp != CatchUpNone && last:
		if i := indexOf(k.Queue, k.CatchUpTime); i >= 0 { // by an order that came in the pause
			k.Queue = without(k.Queue, i)
			k.leaveOut(1, false)
		}
		k.queue(t)
		k.CatchUpTime = t
	default:
		k.leaveOut(1, false)
	}
}
