package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/schedule"
)

// scheduleAnswer is how long it is waited for that a schedule takes a pause, or what it is put to where it is about to end: a turn of it takes moments, but it
// may be blocked.
const scheduleAnswer = 20 * time.Second

// PauseSchedule stops a schedule from starting runs at its scheduled times until ResumeSchedule. The current run
// continues, TriggerSchedule still starts runs, and queued runs and backfills are kept. Pausing a paused schedule replaces
// the message.
//
// PauseSchedule is an update of the schedule's instance and returns the errors of Update. It waits up to 20 seconds for
// the response. Without one, for example because the schedule is blocked, it returns a *UpdateError with UpdatePending,
// and the schedule pauses when it continues. For a schedule that runs in an older release, PauseSchedule pauses the
// instance, which then starts no runs at all.
func (c *Client) PauseSchedule(ctx context.Context, id, message string) error {
	s, err := c.Schedule(ctx, id)
	if err == nil && !s.instanceIsPaused {
		_, err = c.tellSchedule(ctx, id, schedule.UpdatePause, message)
		if e, told := errors.AsType[*UpdateError](err); told && e.Code == UpdateHandlerNotFound {
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
	if err == nil && (s.Paused != nil || !s.instanceIsPaused) {
		var was json.RawMessage
		was, err = c.tellSchedule(ctx, id, schedule.UpdateResume, message)
		if e, told := errors.AsType[*UpdateError](err); told && e.Code == UpdateHandlerNotFound {
			err = c.Resume(ctx, schedule.InstanceID(id), message)
		} else if err == nil && string(was) != "true" {
			err = fmt.Errorf("schedule %q: %w", id, ErrNotPaused)
		}
	}
	if err != nil {
		return fmt.Errorf("client: resume schedule: %w", err)
	}
	return nil
}

// tellSchedule sends an update to a schedule, and waits for its answer.
func (c *Client) tellSchedule(ctx context.Context, id, update, message string) (answer json.RawMessage, err error) {
	if err := checkText(fieldMessage, message, 0, MaxMessageBytes); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, scheduleAnswer)
	defer stop()
	return c.Update(ctx, schedule.InstanceID(id), update, message)
}
