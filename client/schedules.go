package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/parallel"
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

	instanceIsPaused bool
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
		entry := provider.ScheduleEntry{ID: settings.ID, NotedAt: s.client.hub.Now().UTC()}
		err = s.client.hub.PutScheduleEntry(ctx, entry)
	}
	if err == nil {
		err = s.put(ctx, &settings)
	}
	if err != nil {
		return fmt.Errorf("client: put schedule %q: %w", provider.Excerpt(settings.ID), err)
	}
	return nil
}

// maxPutAttempts limits the attempts to put a schedule that another caller creates or deletes at the same time.
const maxPutAttempts = 4

// put changes a schedule, or starts it if it does not exist or has ended.
func (s *Schedules) put(ctx context.Context, settings *schedule.Schedule) (err error) {
	c, instanceID := s.client, schedule.InstanceID(settings.ID)
	for range maxPutAttempts {
		err = c.RaiseEvent(ctx, instanceID, schedule.CommandEvent, schedule.Command{Replace: settings})
		if err == nil {
			err = s.waitUntilApplied(ctx, settings)
		}
		if errors.Is(err, ErrEnded) {
			purged := c.Purge(ctx, instanceID)
			if errors.Is(purged, ErrNotEnded) { // another caller has started it again
				err = purged
				continue
			}
			if purged != nil && !errors.Is(purged, ErrNotFound) {
				return purged
			}
			err = ErrNotFound
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		state := schedule.State{Schedule: *settings}
		_, err = c.Start(ctx, schedule.OrchestrationName, state, WithInstanceID(instanceID))
		if !errors.Is(err, ErrAlreadyExists) {
			return err
		}
	}
	return err
}

// waitUntilApplied waits until a schedule that is about to end has applied a change, because it does not receive the
// change after its end. It returns ErrEnded or ErrNotFound if the schedule ended without the change.
func (s *Schedules) waitUntilApplied(ctx context.Context, settings *schedule.Schedule) error {
	short, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	instanceID := schedule.InstanceID(settings.ID)
	err := s.client.hub.WaitUntil(short, instanceID, func(ctx context.Context) (done bool, err error) {
		is, err := s.Get(ctx, settings.ID)
		if err == nil && is.RuntimeStatus.Terminal() {
			err = ErrEnded
		}
		return !scheduling.EndsSoon(&is.Status, is.RuntimeStatus) || scheduling.HasSettings(&is.Status, settings), err
	})
	if err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("schedule is ending and did not apply the change within %v; try again", scheduleTimeout)
}

// Trigger starts a run of a schedule now, as if it were scheduled for this time, and returns the run's instance ID. The
// overlap policy applies. A paused schedule also starts the run. If the schedule's instance is paused, the run starts
// when the instance is resumed. A schedule that was deleted and has not ended counts the run as missed.
//
// Trigger returns ErrNotFound if the schedule does not exist and ErrEnded if it has ended.
func (s *Schedules) Trigger(ctx context.Context, id string) (runID string, err error) {
	at := s.client.hub.Now().UTC().Truncate(time.Millisecond)
	if err := s.command(ctx, id, schedule.Command{RunAt: at, Manual: true}); err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return schedule.RunID(id, at), nil
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
	is, err := s.Get(ctx, id)
	if err == nil {
		w := schedule.BackfillWindow{From: from, To: to}
		err = scheduling.CheckBackfill(is.Status, is.RuntimeStatus, w, s.client.hub.Now())
	}
	if err == nil {
		window := &schedule.BackfillWindow{From: from.UTC(), To: to.UTC()}
		err = s.command(ctx, id, schedule.Command{Backfill: window})
	}
	return wrap("backfill schedule", err)
}

// Delete ends a schedule when its current run has ended, or immediately if no run is active. To cancel the run as well,
// cancel the schedule's instance. If the schedule has already ended, Delete purges it. It returns ErrNotFound if the
// schedule does not exist.
func (s *Schedules) Delete(ctx context.Context, id string) error {
	err := s.command(ctx, id, schedule.Command{Delete: true})
	if errors.Is(err, ErrEnded) {
		err = s.client.Purge(ctx, schedule.InstanceID(id))
	}
	return wrap("delete schedule", err)
}

// command sends a command to a schedule.
func (s *Schedules) command(ctx context.Context, id string, o schedule.Command) error {
	if err := checkScheduleID(id); err != nil {
		return err
	}
	return s.client.RaiseEvent(ctx, schedule.InstanceID(id), schedule.CommandEvent, o)
}

func checkScheduleID(id string) error { return inputcheck.Text("id", id, 1, schedule.MaxIDBytes) }

// Get returns the state of a schedule after the last turn of its instance. The read is strongly consistent.
// Get returns ErrNotFound if the schedule does not exist.
func (s *Schedules) Get(ctx context.Context, id string) (status ScheduleStatus, err error) {
	defer func() { err = wrap("schedule", err) }()
	if err := checkScheduleID(id); err != nil {
		return status, err
	}
	in, err := s.client.hub.Instance(ctx, schedule.InstanceID(id))
	if err != nil {
		return status, err
	}
	status.InstanceID, status.instanceIsPaused = in.InstanceID, in.Status == StatusPaused
	status.Status, status.RuntimeStatus, err = scheduling.ReadStatus(&in)
	return status, err
}

// entryTimeout is the time after which an entry without a schedule is deleted. A call of Put takes much less time.
const entryTimeout = 10 * time.Minute

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
	var listed []*listedSchedule
	for entry, err := range s.client.hub.ListSchedules(ctx, p.Cursor) {
		if err != nil {
			return page, err
		}
		listed = append(listed, &listedSchedule{entry: entry})
		if len(listed) == cmp.Or(p.Limit, defaultPage) {
			page.NextCursor = entry.ID
			break
		}
	}

	err = parallel.Each(listed, func(l *listedSchedule) (err error) {
		l.status, err = s.readEntry(ctx, l.entry)
		l.exists = err == nil
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return Page[ScheduleStatus]{}, err
	}
	for _, l := range listed {
		if l.exists {
			page.Items = append(page.Items, l.status)
		}
	}
	return page, nil
}

// listedSchedule is an entry of a page with the schedule that it names, if the schedule exists.
type listedSchedule struct {
	entry  provider.ScheduleEntry
	status ScheduleStatus
	exists bool
}

// readEntry reads the schedule of an entry. It deletes an entry whose schedule does not exist, unless a caller may be
// creating the schedule. The next list repeats a deletion that fails.
func (s *Schedules) readEntry(ctx context.Context, entry provider.ScheduleEntry) (ScheduleStatus, error) {
	status, err := s.Get(ctx, entry.ID)
	if errors.Is(err, ErrNotFound) && s.client.hub.Now().Sub(entry.NotedAt) > entryTimeout {
		_ = s.client.hub.DeleteScheduleEntry(ctx, entry)
	}
	return status, err
}
