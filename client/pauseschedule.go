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

// PauseSchedule has a schedule start no runs by its times until ResumeSchedule. The run that is under way goes on, and what is asked for by RunSchedule is started;
// what waits in its queue, and a backfill, is kept. Paused again it is paused with the later message.
//
// It is an update of the schedule's instance, whose answer it waits for, with the errors of Update: one without an answer within 20 s, as of a schedule that is
// blocked, is a *UpdateError with UpdatePending, and is taken when the schedule goes on. A schedule that a release before this one runs is paused by Pause of
// its instance, and then starts nothing at all.
func (c *Client) PauseSchedule(ctx context.Context, id, message string) error {
	s, err := c.Schedule(ctx, id)
	if err == nil && !s.instanceIsPaused {
		_, err = c.tellSchedule(ctx, id, schedule.UpdatePause, message)
		if e, told := errors.AsType[*UpdateError](err); told && e.Code == UpdateUnknown {
			err = c.Pause(ctx, schedule.InstanceID(id), message)
		}
	}
	if err != nil {
		return fmt.Errorf("client: pause schedule: %w", err)
	}
	return nil
}

// ResumeSchedule ends a pause: what came due meanwhile is made up for as the schedule's CatchUp has it. It ends that of the schedule, with the errors of PauseSchedule,
// also one that is on its way, and that of its instance, with the errors of Resume. It returns ErrNotPaused where there was neither.
func (c *Client) ResumeSchedule(ctx context.Context, id, message string) error {
	s, err := c.Schedule(ctx, id)
	if err == nil && s.instanceIsPaused {
		err = c.Resume(ctx, schedule.InstanceID(id), message)
	}
	if err == nil && (s.Paused != nil || !s.instanceIsPaused) {
		var was json.RawMessage
		was, err = c.tellSchedule(ctx, id, schedule.UpdateResume, message)
		if e, told := errors.AsType[*UpdateError](err); told && e.Code == UpdateUnknown {
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
