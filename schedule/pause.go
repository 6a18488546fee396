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

// Pause is the pause of a schedule: its start and its message.
type Pause struct {
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
}

// takePauses has the schedule take its updates. A pause is the schedule's own, and not one of its instance: that would hold the runs by hand, too.
func takePauses(k *keeper) error {
	err := perdure.SetUpdateHandler(k.ctx, UpdatePause, func(ctx *perdure.OrchestrationContext, message string) (bool, error) {
		pause(k, ctx, message)
		return true, nil
	})
	if err == nil {
		err = perdure.SetUpdateHandler(k.ctx, UpdateResume, func(ctx *perdure.OrchestrationContext, _ string) (bool, error) { return resume(k, ctx), nil })
	}
	return err
}

// pause begins a pause. What has come due before it is dealt with as ever, and what comes in it when it ends.
func pause(k *keeper, ctx *perdure.OrchestrationContext, message string) {
	if k.Paused == nil {
		k.lookAtTheClock(ctx)
	}
	if k.Paused == nil {
		k.Paused = &Pause{At: ctx.Now()}
	}
	k.Paused = &Pause{At: k.Paused.At, Message: history.TruncateMessage(message, MaxMessageBytes)}
	ctx.SetCustomStatus(k.status())
	if k.due != nil && k.due != k.last && !k.due.IsDone() {
		k.due.Cancel("the schedule is paused")
	}
}

// resume ends a pause, and says whether there was one. The event is what the keeper waits for, and has it look at the clock.
func resume(k *keeper, ctx *perdure.OrchestrationContext) (was bool) {
	if was = k.Paused != nil; was {
		k.Paused = nil
		perdure.RaiseEvent(ctx, ctx.InstanceID(), CommandEvent, Command{})
	}
	return was
}

// takeRun has a run that was asked for started as soon as it may. One that was asked for by a client of before is kept by a pause, as it was when that was one of
// the instance: histories of then replay as they are.
func takeRun(k *keeper, t time.Time, byHand bool) {
	overlaps := k.run != nil && k.Schedule.Overlap == OverlapCancel
	switch {
	case overlaps && k.Paused != nil && byHand:
		overlapPaused(k, t)
	case overlaps:
		k.overlap(t)
	default:
		k.queue(t)
	}
	if byHand {
		k.Manual = append(k.Manual, t)
	}
}

// overlapPaused is overlap for a run by hand, of a schedule that cancels what is under way and is paused: those by hand that wait are left out for it, and the times
// that are kept stay.
func overlapPaused(k *keeper, t time.Time) {
	for _, waits := takeByHand(k); waits; _, waits = takeByHand(k) {
		k.leaveOut(1, true)
	}
	k.queue(t)
	if !k.run.past {
		k.cancelRun()
	}
}
