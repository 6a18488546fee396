package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/schedule"
)

// scheduleTimeout limits the wait for a schedule's response to a pause, a resume, or a put while it ends. The schedule
// may be blocked.
const scheduleTimeout = 20 * time.Second

// PauseSchedule stops a schedule from starting runs at its scheduled times until ResumeSchedule. The current run
// continues, TriggerSchedule still starts runs, and queued runs and backfills are kept. Pausing a paused schedule
// replaces the message.
//
// PauseSchedule is an update of the schedule's instance and returns the errors of Update. It waits up to 20 seconds for
// the response. Without one, for example because the schedule is blocked, it returns a *UpdateError with UpdatePending,
// and the schedule pauses when it continues. If the schedule's instance is paused, PauseSchedule does not wait, and the
// schedule pauses when its instance is resumed. For a schedule that runs in an older release, PauseSchedule pauses the
// instance, which then starts no runs at all.
func (c *Client) PauseSchedule(ctx context.Context, id, message string) error {
	s, err := c.Schedule(ctx, id)
	switch {
	case err != nil:
	case s.instanceIsPaused:
		err = c.sendSchedulePause(ctx, id, message)
	default:
		_, err = c.updateSchedule(ctx, id, schedule.UpdatePause, message)
		if hasNoHandler(err) {
			err = c.Pause(ctx, schedule.InstanceID(id), message)
		}
	}
	if err != nil {
		return fmt.Errorf("client: pause schedule: %w", err)
	}
	return nil
}

// ResumeSchedule resumes a paused schedule. The schedule's CatchUp decides what happens to the times that it missed.
// ResumeSchedule also resumes the schedule's instance if it is paused. It returns the errors of PauseSchedule and
// Resume, and ErrNotPaused if neither the schedule nor its instance was paused.
func (c *Client) ResumeSchedule(ctx context.Context, id, message string) error {
	s, err := c.Schedule(ctx, id)
	if err == nil && s.instanceIsPaused {
		err = c.Resume(ctx, schedule.InstanceID(id), message)
	}
	if err == nil { // the resumed instance may have a parked pause of the schedule, which its status does not show
		err = c.endSchedulePause(ctx, &s, message)
	}
	if err != nil {
		return fmt.Errorf("client: resume schedule: %w", err)
	}
	return nil
}

// endSchedulePause ends the schedule's own pause. In an older release, a pause of the instance is the only one.
func (c *Client) endSchedulePause(ctx context.Context, s *ScheduleStatus, message string) error {
	id := s.Schedule.ID
	wasPaused, err := c.updateSchedule(ctx, id, schedule.UpdateResume, message)
	switch {
	case hasNoHandler(err) && s.instanceIsPaused:
		return nil
	case hasNoHandler(err):
		return c.Resume(ctx, schedule.InstanceID(id), message)
	case err == nil && string(wasPaused) != "true" && !s.instanceIsPaused:
		return fmt.Errorf("schedule %q: %w", id, ErrNotPaused)
	default:
		return err
	}
}

// hasNoHandler reports whether the schedule runs in a release without pauses of schedules.
func hasNoHandler(err error) bool {
	e, ok := errors.AsType[*UpdateError](err)
	return ok && e.Code == UpdateHandlerNotFound
}

// sendSchedulePause sends a pause to a schedule whose paused instance parks it, and does not wait for the response.
func (c *Client) sendSchedulePause(ctx context.Context, id, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return err
	}
	u, err := c.newUpdate(schedule.InstanceID(id), schedule.UpdatePause, message, updateOptions{})
	if err != nil {
		return err
	}
	return u.Send(ctx)
}

// updateSchedule sends an update to a schedule and waits for the response.
func (c *Client) updateSchedule(ctx context.Context, id, update, message string) (json.RawMessage, error) {
	if err := inputcheck.Message(message); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	return c.Update(ctx, schedule.InstanceID(id), update, message)
}
