package schedule

import (
	"time"

	"github.com/perdure/perdure"
)

// processDue processes the times that were due since the last call. The times are recorded in the history, because a
// different release or time zone database may compute different times in a replay.
func (s *scheduler) processDue(ctx *perdure.OrchestrationContext) {
	now := ctx.Now()
	d := perdure.SideEffect(ctx, func() due { return s.plan.between(s.ProcessedUntil, now) })
	s.ProcessedUntil, s.next = now, d.Next
	if s.Deleting {
		return
	}

	if d.Before > 0 {
		s.countDropped(d.Before, s.overlapsRun(d.Times[0]))
	}
	// After a pause of the hub, times are late. Paused is that of the schedule.
	missed := func(t time.Time) bool { return s.Paused != nil || (!s.overlapsRun(t) && now.Sub(t) > missedAfter) }
	for i, t := range d.Times {
		switch {
		case s.overlapsRun(t):
			s.overlap(t)
		case missed(t):
			s.catchUp(t, i == len(d.Times)-1 || !missed(d.Times[i+1]))
		default:
			s.enqueue(t)
		}
	}
	if s.Paused == nil {
		s.CatchUpTime = time.Time{}
	}
}

// overlapsRun reports whether a time was due during the current run or a run that has just ended: processDue is called
// before checkRun. Times in a pause do not overlap. They are processed after the pause, and a manual run in the pause
// is not the previous run of the schedule.
func (s *scheduler) overlapsRun(t time.Time) bool {
	return s.run != nil && s.Paused == nil && t.After(s.run.StartedAt)
}

// overlap handles a time that was due during a run.
func (s *scheduler) overlap(t time.Time) {
	if s.run != nil && s.run.backfill {
		s.overlapBackfill(t)
		return
	}
	switch s.Schedule.Overlap {
	case OverlapQueue, OverlapAllow:
		s.enqueue(t)
	case OverlapCancel:
		s.Counts.Skipped += int64(len(s.takeAll()))
		s.enqueue(t)
		s.cancelRun()
	default:
		s.Counts.Skipped++
	}
}
