package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/scheduling"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// Schedules manages the schedules of a hub. Client.Schedules returns it. It is safe for concurrent use.
type Schedules struct{ client *Client }

// Schedules returns the type that manages the hub's schedules.
func (c *Client) Schedules() *Schedules { return &Schedules{client: c} }

// ScheduleStatus is the state of a schedule. Its JSON is the same as in the HTTP API.
type ScheduleStatus struct {
	schedule.Status

	// RuntimeStatus is the status of the schedule's instance, normally Running. It is Paused if the schedule or its
	// instance is paused. Status.Paused is set only if the schedule is paused. A paused instance does not start manual
	// runs either.
	RuntimeStatus RuntimeStatus `json:"status"`
	// InstanceID is the ID of the schedule's instance. The history of the instance contains the runs that it started.
	InstanceID string `json:"instanceId"`
}

// Put creates a schedule or replaces the settings of the schedule with the same ID. The current run continues, and
// later times follow the new settings. Put does not end a pause. Repeating the call has no effect.
//
// If the schedule is about to end, because it was deleted or has no more times, Put waits until the change is applied.
// After 20 seconds, Put returns an error. In this case, call Put again.
//
// Put returns a *provider.FieldError for an invalid schedule, and ErrUnknownOrchestration if no deployed build
// supports schedules. It does not check that the scheduled orchestration exists.
//
// In addition to its runs, a schedule costs a timer and two turns for each scheduled time. With schedule.OverlapAllow,
// it costs one turn.
func (s *Schedules) Put(ctx context.Context, settings schedule.Schedule) error {
	err := settings.Validate()
	if err == nil {
		err = s.client.schedules.Put(ctx, &settings)
	}
	if err != nil {
		return fmt.Errorf("client: put schedule %q: %w", provider.Excerpt(settings.ID), err)
	}
	return nil
}

// Trigger starts a run of a schedule now, as if it were scheduled for this time, and returns the run's instance ID. The
// overlap policy applies. A paused schedule also starts the run. If the schedule's instance is paused, the run starts
// when the instance is resumed. A schedule that was deleted and has not ended counts the run as missed.
//
// Trigger returns ErrNotFound if the schedule does not exist and ErrEnded if it has ended.
func (s *Schedules) Trigger(ctx context.Context, id string, opts ...TriggerOption) (runID string, err error) {
	o := optionsOf(opts)
	err = checkScheduleID(id)
	if err == nil {
		err = scheduling.CheckKey(o.key, s.client.hub.Now())
	}
	if err == nil {
		runID, err = s.client.schedules.Trigger(ctx, id, o.key)
	}
	if err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return runID, nil
}

// Backfill starts the runs of a schedule for its scheduled times from from to to, inclusive. A time that already has a
// run is skipped, even if the run failed, so that the call can be repeated. A purged run is started again. The window
// may include times before the creation of the schedule, within its From and Until.
//
// The runs start in order, one after the other, or concurrently with schedule.OverlapAllow. They start after the runs
// that are queued. Runs that become due during the backfill start before the rest of the backfill and cancel none of
// its runs. A paused schedule continues the backfill when it is resumed. Delete ends the backfill.
//
// Backfill returns a *provider.FieldError if from is after to or to is in the future. It also returns this error if the
// range has more than schedule.MaxBackfillRuns times, or if schedule.MaxPendingBackfills backfills are waiting.
// Otherwise it returns the errors of Trigger. A schedule that runs in a release without backfills ignores the request.
func (s *Schedules) Backfill(ctx context.Context, id string, from, to time.Time) error {
	err := checkScheduleID(id)
	if err == nil {
		err = s.client.schedules.Backfill(ctx, id, schedule.BackfillWindow{From: from, To: to})
	}
	return wrap("backfill schedule", err)
}

// Delete ends a schedule when its current run has ended, or immediately if no run is active. To cancel the run as well,
// cancel the schedule's instance. If the schedule has already ended, Delete purges it. It returns ErrNotFound if the
// schedule does not exist.
func (s *Schedules) Delete(ctx context.Context, id string) error {
	err := checkScheduleID(id)
	if err == nil {
		err = s.client.schedules.Delete(ctx, id)
	}
	return wrap("delete schedule", err)
}

func checkScheduleID(id string) error { return inputcheck.Text("id", id, 1, schedule.MaxIDBytes) }

// Get returns the state of a schedule after the last turn of its instance. The read is strongly consistent.
// Get returns ErrNotFound if the schedule does not exist.
func (s *Schedules) Get(ctx context.Context, id string) (status ScheduleStatus, err error) {
	defer func() { err = wrap("schedule", err) }()
	if err := checkScheduleID(id); err != nil {
		return status, err
	}
	return s.client.schedules.Schedule(ctx, id)
}

// List yields all schedules, sorted by ID. The iterator ends with the first error.
func (s *Schedules) List(ctx context.Context) iter.Seq2[ScheduleStatus, error] {
	return eachOfPages(func(p Paging) (Page[ScheduleStatus], error) { return s.ListPage(ctx, p) })
}

// ListPage returns one page of List. It reads a page of IDs and the instance of each, some of them concurrently.
func (s *Schedules) ListPage(ctx context.Context, p Paging) (page Page[ScheduleStatus], err error) {
	defer func() { err = wrap("schedules", err) }()
	if err := errors.Join(inputcheck.Limit(p.Limit), inputcheck.Cursor(p.Cursor)); err != nil {
		return page, err
	}
	page.Items, page.NextCursor, err = s.client.schedules.ListSchedules(ctx, cmp.Or(p.Limit, defaultPage), p.Cursor)
	return page, err
}

// TriggerOption is an option of Schedules.Trigger.
type TriggerOption func(*triggerOptions)

type triggerOptions struct{ key string }

// WithTriggerKey makes all calls of Trigger with the same key one call, which starts one run. The key is a ULID. Its
// time, at most five minutes from now, is the time of the run. Any other key is a *provider.FieldError.
func WithTriggerKey(ulid string) TriggerOption { return func(o *triggerOptions) { o.key = ulid } }
