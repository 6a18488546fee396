package schedule

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// The names of the updates that pause and resume a schedule. Their input is a message. The schedule stores at
// most MaxMessageBytes.
const (
	UpdatePause  = "perdure.schedule.pause"
	UpdateResume = "perdure.schedule.resume"
)

// MaxMessageBytes is the maximum size of the message of a pause. Longer messages are truncated.
const MaxMessageBytes = 1024

// Pause describes the pause of a schedule.
type Pause struct {
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
}

// setUpdateHandlers sets the handlers that pause and resume the schedule. Pausing the instance instead would also stop
// manual runs.
func (s *scheduler) setUpdateHandlers() error {
	pause := func(ctx *perdure.OrchestrationContext, message string) (bool, error) {
		s.pause(ctx, message)
		return true, nil
	}
	if err := perdure.SetUpdateHandler(s.ctx, UpdatePause, pause); err != nil {
		return err
	}
	resume := func(ctx *perdure.OrchestrationContext, _ string) (bool, error) { return s.resume(ctx), nil }
	return perdure.SetUpdateHandler(s.ctx, UpdateResume, resume)
}

// pause pauses the schedule. It first processes times before the pause. Times in the pause are processed when the pause
// ends.
func (s *scheduler) pause(ctx *perdure.OrchestrationContext, message string) {
	if s.Paused == nil {
		s.processDue(ctx)
	}
	if s.Paused == nil {
		s.Paused = &Pause{At: ctx.Now()}
	}
	s.Paused = &Pause{At: s.Paused.At, Message: history.TruncateMessage(message, MaxMessageBytes)}
	ctx.SetCustomStatus(s.status())
	if s.timer != nil && s.timer != s.end && !s.timer.IsDone() {
		s.timer.Cancel("the schedule is paused")
	}
}

// resume ends a pause, and reports whether the schedule was paused. The raised event wakes the scheduler, so that it
// processes the times of the pause.
func (s *scheduler) resume(ctx *perdure.OrchestrationContext) (wasPaused bool) {
	if wasPaused = s.Paused != nil; wasPaused {
		s.Paused = nil
		perdure.RaiseEvent(ctx, ctx.InstanceID(), CommandEvent, Command{})
	}
	return wasPaused
}

// requestRun enqueues a run that a client requested. A request from an earlier release is not manual and waits for the
// end of a pause. This is the behavior of that release, so its histories can be replayed.
func (s *scheduler) requestRun(t time.Time, manual bool) {
	cancels := s.run != nil && s.Schedule.Overlap == OverlapCancel
	switch {
	case cancels && s.Paused != nil && manual:
		s.overlapPaused(t)
	case cancels:
		s.overlap(t)
	default:
		s.enqueue(t)
	}
	if manual {
		s.Manual = append(s.Manual, t)
	}
}

// overlapPaused handles a manual run of a paused schedule with OverlapCancel. It replaces waiting manual runs and
// cancels the current run. Times that wait for the end of the pause remain in the queue.
func (s *scheduler) overlapPaused(t time.Time) {
	for _, ok := s.takeManual(); ok; _, ok = s.takeManual() {
		s.Counts.Skipped++
	}
	s.enqueue(t)
	if !s.run.backfill {
		s.cancelRun()
	}
}
