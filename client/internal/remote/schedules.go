package remote

import (
	"context"
	"crypto/rand"
	"net/url"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/schedule"
)

// Schedules are the schedules of a hub behind the API. Status is client.ScheduleStatus, whose JSON is that of the API.
type Schedules[Status any] struct{ *Hub }

// Schedule returns the status of a schedule.
func (r Schedules[C]) Schedule(ctx context.Context, id string) (C, error) {
	return apiclient.Get[C](ctx, r.api, apiclient.Call{
		Operation: "getSchedule", Path: []string{id}, InstanceID: schedule.InstanceID(id),
	})
}

// ListSchedules returns a page of schedules.
func (r Schedules[C]) ListSchedules(
	ctx context.Context, limit int, cursor string,
) (items []C, next string, err error) {
	p, err := apiclient.Get[page[C]](ctx, r.api, apiclient.Call{
		Operation: "listSchedules", Query: paged(url.Values{}, limit, cursor),
	})
	return p.Items, p.NextCursor, err
}

// Put creates or replaces a schedule.
func (r Schedules[C]) Put(ctx context.Context, settings *schedule.Schedule) error {
	return r.command(ctx, settings.ID, apiclient.Call{Operation: "putSchedule", Body: settings})
}

// Delete ends a schedule.
func (r Schedules[C]) Delete(ctx context.Context, id string) error {
	return r.command(ctx, id, apiclient.Call{
		Operation: "deleteSchedule", Settled: []string{apiwire.CodeInstanceNotFound},
	})
}

// Backfill runs past times.
func (r Schedules[C]) Backfill(ctx context.Context, id string, w schedule.BackfillWindow) error {
	return r.command(ctx, id, apiclient.Call{
		Operation: "backfillSchedule",
		Body:      map[string]time.Time{"from": w.From.UTC(), "to": w.To.UTC()},
	})
}

// Trigger starts a run and returns its instance ID. The key is a ULID, or empty for a new one.
func (r Schedules[C]) Trigger(ctx context.Context, id, runKey string) (runID string, err error) {
	optional := runKey == ""
	if optional {
		runKey = ulid.MustNew(ulid.Timestamp(r.hub.Now()), rand.Reader).String()
	}
	instanceID := schedule.InstanceID(id)
	err = r.call(ctx, clientcall.Raise, instanceID, schedule.CommandEvent, func(ctx context.Context) error {
		a, err := apiclient.Get[apiwire.AcceptedResponse](ctx, r.api, apiclient.Call{
			Operation: "runSchedule", Path: []string{id}, InstanceID: instanceID, NamesOther: true, Key: runKey,
			KeyIsOptional: optional,
		})
		runID = a.InstanceID
		return err
	})
	return runID, err
}

// Pause pauses a schedule.
func (r Schedules[C]) Pause(ctx context.Context, id, message string) error {
	call := apiclient.Call{
		Operation: "pauseSchedule", Path: []string{id}, InstanceID: schedule.InstanceID(id), Body: reason{message},
		Errors: updateErrors(schedule.InstanceID(id), schedule.UpdatePause),
	}
	return r.do(ctx, clientcall.Update, schedule.UpdatePause, call)
}

// Resume resumes a schedule, and reports whether it was paused.
func (r Schedules[C]) Resume(ctx context.Context, id, message string) (wasPaused bool, err error) {
	instanceID := schedule.InstanceID(id)
	err = r.call(ctx, clientcall.Update, instanceID, schedule.UpdateResume, func(ctx context.Context) error {
		wasPaused, err = r.accept(ctx, apiclient.Call{
			Operation: "resumeSchedule", Path: []string{id}, InstanceID: instanceID, Body: reason{message},
			Errors: updateErrors(instanceID, schedule.UpdateResume),
		})
		return err
	})
	return wasPaused, err
}

// updateErrors returns the function for the errors of a call that sends an update to a schedule.
func updateErrors(instanceID, update string) func(*apiwire.Problem) error {
	return func(p *apiwire.Problem) error {
		if r := failedUpdate(p); r != nil {
			return &updating.FailedError{Update: updating.Update{InstanceID: instanceID, Name: update}, Result: *r}
		}
		return nil
	}
}

// command sends a command to a schedule.
func (r Schedules[C]) command(ctx context.Context, id string, call apiclient.Call) error {
	call.Path, call.InstanceID = []string{id}, schedule.InstanceID(id)
	return r.do(ctx, clientcall.Raise, schedule.CommandEvent, call)
}
