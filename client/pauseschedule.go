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

// scheduleTimeout limits the wait for a schedule's response to a pause or resume, and for an ending schedule to apply a
// put. The schedule may be blocked.
const scheduleTimeout = 20 * time.Second

// Pause stops a schedule from starting runs at its scheduled times until Resume. The current run continues, Trigger
// still starts runs, and queued runs and backfills are kept. Pausing a paused schedule replaces the message.
//
// Pause is an update of the schedule's instance and returns the errors of Update. It waits up to 20 seconds for the
// response. If no response arrives, for example because the schedule is blocked, Pause returns a *UpdateError with
// UpdatePending, and the schedule pauses when it continues. If the schedule's instance is paused, Pause does not wait,
// and the schedule pauses when its instance is resumed. For a schedule that runs in an older release, Pause pauses the
// instance, which then does not start any runs.
func (s *Schedules) Pause(ctx context.Context, id, message string) error {
	status, err := s.Get(ctx, id)
	switch {
	case err != nil:
	case status.instanceIsPaused:
		err = s.sendPause(ctx, id, message)
	default:
		_, err = s.update(ctx, id, schedule.UpdatePause, message)
		if hasNoHandler(err) {
			err = s.client.Pause(ctx, schedule.InstanceID(id), message)
		}
	}
	return wrap("pause schedule", err)
}

// Resume resumes a paused schedule. The schedule's CatchUp policy applies to the times that it missed. Resume also
// resumes the schedule's instance if it is paused. It returns the errors of Pause and Client.Resume, and ErrNotPaused
// if neither the schedule nor its instance was paused.
func (s *Schedules) Resume(ctx context.Context, id, message string) error {
	status, err := s.Get(ctx, id)
	if err == nil && status.instanceIsPaused {
		err = s.client.Resume(ctx, schedule.InstanceID(id), message)
	}
	if err == nil { // the status does not show a pause of the schedule that the paused instance has parked
		err = s.endPause(ctx, &status, message)
	}
	return wrap("resume schedule", err)
}

// endPause ends the schedule's own pause. In an older release, only the instance can be paused.
func (s *Schedules) endPause(ctx context.Context, status *ScheduleStatus, message string) error {
	id := status.Schedule.ID
	wasPaused, err := s.update(ctx, id, schedule.UpdateResume, message)
	switch {
	case hasNoHandler(err) && status.instanceIsPaused:
		return nil
	case hasNoHandler(err):
		return s.client.Resume(ctx, schedule.InstanceID(id), message)
	case err == nil && string(wasPaused) != "true" && !status.instanceIsPaused:
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

// sendPause sends a pause to a schedule whose paused instance parks it, and does not wait for the response.
func (s *Schedules) sendPause(ctx context.Context, id, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return err
	}
	u, err := s.client.newUpdate(schedule.InstanceID(id), schedule.UpdatePause, message, updateOptions{})
	if err != nil {
		return err
	}
	return u.Send(ctx)
}

// update sends an update to a schedule and waits for the response.
func (s *Schedules) update(ctx context.Context, id, update, message string) (json.RawMessage, error) {
	if err := inputcheck.Message(message); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	return s.client.Update(ctx, schedule.InstanceID(id), update, message)
}
