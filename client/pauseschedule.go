package client

import (
	"cmp"
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/inputcheck"
)

// Pause stops a schedule from starting runs at its scheduled times until Resume. The current run continues, Trigger
// still starts runs, and queued runs and backfills are kept. Pausing a paused schedule replaces the message.
//
// Pause is an update of the schedule's instance and returns the errors of Update. It waits up to 20 seconds for the
// response. If no response arrives, for example because the schedule is blocked, Pause returns a *UpdateError with
// UpdatePending, and the schedule pauses when it continues. If the schedule's instance is paused, Pause does not wait,
// and the schedule pauses when its instance is resumed. For a schedule that runs in an older release, Pause pauses the
// instance, which then does not start any runs.
func (s *Schedules) Pause(ctx context.Context, id, message string) error {
	err := cmp.Or(checkScheduleID(id), inputcheck.Message(message))
	if err == nil {
		err = s.client.schedules.Pause(ctx, id, message)
	}
	return wrap("pause schedule", publicUpdateError(err))
}

// Resume resumes a paused schedule. The schedule's CatchUp policy applies to the times that it missed. Resume also
// resumes the schedule's instance if it is paused. It returns the errors of Pause and Client.Resume, and ErrNotPaused
// if neither the schedule nor its instance was paused.
func (s *Schedules) Resume(ctx context.Context, id, message string) error {
	err := cmp.Or(checkScheduleID(id), inputcheck.Message(message))
	if err == nil {
		var wasPaused bool
		if wasPaused, err = s.client.schedules.Resume(ctx, id, message); err == nil && !wasPaused {
			err = fmt.Errorf("schedule %q: %w", id, ErrNotPaused)
		}
	}
	return wrap("resume schedule", publicUpdateError(err))
}
