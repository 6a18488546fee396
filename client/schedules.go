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

// ScheduleStatus is the state of a schedule. Its JSON is that of the HTTP API.
type ScheduleStatus struct {
	schedule.Status

	// RuntimeStatus is the status of the schedule's instance, normally Running. It is Paused if the schedule is paused,
	// which also sets Status.Paused, and if the instance is paused. A paused instance does not start manual runs
	// either.
	RuntimeStatus RuntimeStatus `json:"status"`
	// InstanceID is the ID of the schedule's instance. Its history contains the runs that it started.
	InstanceID string `json:"instanceId"`

	instanceIsPaused bool
}

// PutSchedule creates a schedule or replaces the settings of the schedule with the same ID. The current run continues,
// and later times follow the new settings. A pause stays in effect. Repeating the call has no effect.
//
// If the schedule is about to end, because it was deleted or has no more times, PutSchedule waits until the change is
// applied. It returns an error after 20 seconds: call it again.
//
// PutSchedule returns a *provider.FieldError for an invalid schedule, and ErrUnknownOrchestration if no deployed build
// supports schedules. It does not check that the scheduled orchestration exists.
//
// Besides its runs, a schedule costs a timer and two turns for each scheduled time, or one turn with
// schedule.OverlapAllow.
func (c *Client) PutSchedule(ctx context.Context, s schedule.Schedule) error {
	err := s.Validate()
	if err == nil {
		err = c.hub.PutScheduleEntry(ctx, provider.ScheduleEntry{ID: s.ID, NotedAt: c.hub.Now().UTC()})
	}
	if err == nil {
		err = c.putSchedule(ctx, &s)
	}
	if err != nil {
		return fmt.Errorf("client: put schedule %q: %w", provider.Excerpt(s.ID), err)
	}
	return nil
}

// maxPutAttempts limits the attempts to put a schedule that another caller creates or deletes at the same time.
const maxPutAttempts = 4

// putSchedule changes a schedule, or starts it if it does not exist or has ended.
func (c *Client) putSchedule(ctx context.Context, s *schedule.Schedule) (err error) {
	instanceID := schedule.InstanceID(s.ID)
	for range maxPutAttempts {
		err = c.RaiseEvent(ctx, instanceID, schedule.CommandEvent, schedule.Command{Replace: s})
		if err == nil {
			err = c.waitUntilApplied(ctx, s)
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
		_, err = c.Start(ctx, schedule.OrchestrationName, schedule.State{Schedule: *s}, WithInstanceID(instanceID))
		if !errors.Is(err, ErrAlreadyExists) {
			return err
		}
	}
	return err
}

// waitUntilApplied waits until a schedule that is about to end has applied a change, because it does not receive the
// change after its end. It returns ErrEnded or ErrNotFound if the schedule ended without the change.
func (c *Client) waitUntilApplied(ctx context.Context, s *schedule.Schedule) error {
	short, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	err := c.hub.WaitUntil(short, schedule.InstanceID(s.ID), func(ctx context.Context) (done bool, err error) {
		is, err := c.Schedule(ctx, s.ID)
		if err == nil && is.RuntimeStatus.Terminal() {
			err = ErrEnded
		}
		return !scheduling.EndsSoon(&is.Status, is.RuntimeStatus) || scheduling.HasSettings(&is.Status, s), err
	})
	if err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("schedule is ending and did not apply the change within %v; try again", scheduleTimeout)
}

// TriggerSchedule makes a schedule start a run now, as if it were scheduled for this time, and returns the run's
// instance ID. The overlap policy applies. A paused schedule starts the run too. If the schedule's instance is paused,
// the run starts when it is resumed. A schedule that was deleted and has not ended counts the run as missed.
//
// TriggerSchedule returns ErrNotFound if the schedule does not exist and ErrEnded if it has ended.
func (c *Client) TriggerSchedule(ctx context.Context, id string) (runID string, err error) {
	at := c.hub.Now().UTC().Truncate(time.Millisecond)
	if err := c.commandSchedule(ctx, id, schedule.Command{RunAt: at, Manual: true}); err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return schedule.RunID(id, at), nil
}

// BackfillSchedule makes a schedule start the runs of its scheduled times between from and to, both inclusive. A time
// that already has a run is skipped, also if the run failed, so that the call can be repeated. A purged run is started
// again. Times before the creation of the schedule count, within its From and Until.
//
// The runs start in order, one after the other, or concurrently with schedule.OverlapAllow. They start after the runs
// that are queued. Runs that become due meanwhile start before the rest of the backfill and cancel no run of it. A
// paused schedule continues the backfill when it is resumed. DeleteSchedule ends it.
//
// BackfillSchedule returns a *provider.FieldError if from is after to, if to is in the future, if the range has more
// than schedule.MaxBackfillRuns times, or if schedule.MaxPendingBackfills backfills are waiting. Otherwise it returns
// the errors of TriggerSchedule. A schedule that runs in a release without backfills ignores the request.
func (c *Client) BackfillSchedule(ctx context.Context, id string, from, to time.Time) error {
	s, err := c.Schedule(ctx, id)
	if err == nil {
		w := schedule.BackfillWindow{From: from, To: to}
		err = scheduling.CheckBackfill(s.Status, s.RuntimeStatus, w, c.hub.Now())
	}
	if err == nil {
		window := &schedule.BackfillWindow{From: from.UTC(), To: to.UTC()}
		err = c.commandSchedule(ctx, id, schedule.Command{Backfill: window})
	}
	if err != nil {
		return fmt.Errorf("client: backfill schedule: %w", err)
	}
	return nil
}

// DeleteSchedule ends a schedule when its current run has ended, or immediately if there is none. To cancel the run
// too, cancel the schedule's instance. If the schedule has already ended, DeleteSchedule purges it. It returns
// ErrNotFound if the schedule does not exist.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	err := c.commandSchedule(ctx, id, schedule.Command{Delete: true})
	if errors.Is(err, ErrEnded) {
		err = c.Purge(ctx, schedule.InstanceID(id))
	}
	if err != nil {
		return fmt.Errorf("client: delete schedule: %w", err)
	}
	return nil
}

// commandSchedule sends a command to a schedule.
func (c *Client) commandSchedule(ctx context.Context, id string, o schedule.Command) error {
	if err := checkScheduleID(id); err != nil {
		return err
	}
	return c.RaiseEvent(ctx, schedule.InstanceID(id), schedule.CommandEvent, o)
}

func checkScheduleID(id string) error { return provider.CheckText("id", id, 1, schedule.MaxIDBytes) }

// Schedule returns the state of a schedule after the last turn of its instance. The read is strongly consistent.
// Schedule returns ErrNotFound if the schedule does not exist.
func (c *Client) Schedule(ctx context.Context, id string) (ScheduleStatus, error) {
	s, err := c.readSchedule(ctx, id)
	if err != nil {
		return s, fmt.Errorf("client: schedule: %w", err)
	}
	return s, nil
}

func (c *Client) readSchedule(ctx context.Context, id string) (s ScheduleStatus, err error) {
	if err := checkScheduleID(id); err != nil {
		return s, err
	}
	in, err := c.hub.Instance(ctx, schedule.InstanceID(id))
	if err != nil {
		return s, err
	}
	s.InstanceID, s.instanceIsPaused = in.InstanceID, in.Status == StatusPaused
	s.Status, s.RuntimeStatus, err = scheduling.ReadStatus(&in)
	return s, err
}

// entryTimeout is the time after which an entry without a schedule is deleted. A PutSchedule takes far less.
const entryTimeout = 10 * time.Minute

// Schedules yields all schedules, sorted by ID. The iterator ends with the first error.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[ScheduleStatus, error] {
	return eachOfPages(func(p Paging) (Page[ScheduleStatus], error) { return c.SchedulesPage(ctx, p) })
}

// SchedulesPage returns one page of Schedules. It reads a page of IDs and the instance of each, some of them
// concurrently.
func (c *Client) SchedulesPage(ctx context.Context, p Paging) (Page[ScheduleStatus], error) {
	page, err := c.schedulesPage(ctx, p)
	if err != nil {
		return page, fmt.Errorf("client: schedules: %w", err)
	}
	return page, nil
}

func (c *Client) schedulesPage(ctx context.Context, p Paging) (page Page[ScheduleStatus], err error) {
	if err := errors.Join(inputcheck.Limit(p.Limit), inputcheck.Cursor(p.Cursor)); err != nil {
		return page, err
	}
	var listed []*listedSchedule
	for entry, err := range c.hub.ListSchedules(ctx, p.Cursor) {
		if err != nil {
			return page, err
		}
		listed = append(listed, &listedSchedule{entry: entry})
		if len(listed) == cmp.Or(p.Limit, defaultPage) {
			page.NextCursor = entry.ID
			break
		}
	}

	err = parallel.Each(listed, func(s *listedSchedule) (err error) {
		s.status, err = c.readScheduleOf(ctx, s.entry)
		s.exists = err == nil
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return Page[ScheduleStatus]{}, err
	}
	for _, s := range listed {
		if s.exists {
			page.Items = append(page.Items, s.status)
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

// readScheduleOf reads the schedule of an entry. It deletes an entry whose schedule does not exist, unless a caller may
// be creating the schedule. The next list repeats a deletion that fails.
func (c *Client) readScheduleOf(ctx context.Context, entry provider.ScheduleEntry) (ScheduleStatus, error) {
	s, err := c.Schedule(ctx, entry.ID)
	if errors.Is(err, ErrNotFound) && c.hub.Now().Sub(entry.NotedAt) > entryTimeout {
		_ = c.hub.DeleteScheduleEntry(ctx, entry)
	}
	return s, err
}
