package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

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
// Besides its runs, a schedule costs a timer and two turns for each scheduled time, or one turn with schedule.OverlapAllow.
func (c *Client) PutSchedule(ctx context.Context, s schedule.Schedule) error {
	err := s.Validate()
	if err == nil {
		err = c.hub.PutScheduleEntry(ctx, provider.ScheduleEntry{ID: s.ID, NotedAt: c.now().UTC()})
	}
	if err == nil {
		err = c.putNoted(ctx, &s)
	}
	if err != nil {
		return fmt.Errorf("client: put schedule %q: %w", provider.Excerpt(s.ID), err)
	}
	return nil
}

// putTries bounds how often a schedule that another caller makes, or deletes, at the same time is tried.
const putTries = 4

// putNoted changes the schedule, or starts it where there is none or where it is over.
func (c *Client) putNoted(ctx context.Context, s *schedule.Schedule) (err error) {
	instanceID := schedule.InstanceID(s.ID)
	for range putTries {
		err = c.RaiseEvent(ctx, instanceID, schedule.CommandEvent, schedule.Command{Replace: s})
		if err == nil {
			err = c.seeTaken(ctx, s)
		}
		if errors.Is(err, ErrEnded) {
			gone := c.Purge(ctx, instanceID)
			if errors.Is(gone, ErrNotEnded) { // somebody else has started it anew
				err = gone
				continue
			}
			if gone != nil && !errors.Is(gone, ErrNotFound) {
				return gone
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

// seeTaken waits where the schedule is about to end, until it has taken what it is put to: what comes behind its end is received by nobody. It returns
// ErrEnded, or ErrNotFound, where it has ended without.
func (c *Client) seeTaken(ctx context.Context, s *schedule.Schedule) error {
	short, stop := context.WithTimeout(ctx, scheduleAnswer)
	defer stop()
	err := c.lookWaiting(short, schedule.InstanceID(s.ID), func(ctx context.Context) (done bool, err error) {
		is, err := c.Schedule(ctx, s.ID)
		if err == nil && is.RuntimeStatus.Terminal() {
			err = ErrEnded
		}
		return !is.lingers() || is.shows(s), err
	})
	if err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("schedule is ending and did not apply the change within %v; try again", scheduleAnswer)
}

// lingers reports whether the schedule ends in a while, unless it is put to go on. One that stands still takes all orders first when it goes on.
func (s *ScheduleStatus) lingers() bool {
	begun := s.Schedule.Expression != ""
	return begun && s.RuntimeStatus == StatusRunning && s.CurrentRun == nil && (s.Deleting || s.NextDue.IsZero())
}

// shows reports whether it is as it was put, as far as that is shown.
func (s *ScheduleStatus) shows(put *schedule.Schedule) bool {
	as := *put
	as.Input = nil
	want, _ := json.Marshal(&as)       //nolint:errchkjson // texts and times that were validated
	is, _ := json.Marshal(&s.Schedule) //nolint:errchkjson // as they were read
	return !s.Deleting && bytes.Equal(want, is)
}

// TriggerSchedule makes a schedule start a run now, as if it were scheduled for this time, and returns the run's instance
// ID. The overlap policy applies. A paused schedule starts the run too. If the schedule's instance is paused, the run
// starts when it is resumed. A schedule that was deleted and has not ended counts the run as missed.
//
// TriggerSchedule returns ErrNotFound if the schedule does not exist and ErrEnded if it has ended.
func (c *Client) TriggerSchedule(ctx context.Context, id string) (runID string, err error) {
	at := c.now().UTC().Truncate(time.Millisecond)
	if err := c.orderSchedule(ctx, id, schedule.Command{RunAt: at, Manual: true}); err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return schedule.RunID(id, at), nil
}

// BackfillSchedule makes a schedule start the runs of its scheduled times between from and to, both inclusive. A time
// that already has a run is skipped, also if the run failed, so that the call can be repeated. A purged run is started
// again. Times before the creation of the schedule count, within its From and Until.
//
// The runs start in order, one after the other, or concurrently with schedule.OverlapAllow. They start after the runs that are
// queued. Runs that become due meanwhile start before the rest of the backfill and cancel no run of it. A paused
// schedule continues the backfill when it is resumed. DeleteSchedule ends it.
//
// BackfillSchedule returns a *provider.FieldError if from is after to, if to is in the future, if the range has more
// than schedule.MaxBackfillRuns times, or if schedule.MaxPendingBackfills backfills are waiting. Otherwise it returns the errors
// of TriggerSchedule. A schedule that runs in a release without backfills ignores the request.
func (c *Client) BackfillSchedule(ctx context.Context, id string, from, to time.Time) error {
	s, err := c.Schedule(ctx, id)
	if err == nil {
		err = checkBackfill(&s, schedule.BackfillWindow{From: from, To: to}, c.now())
	}
	if err == nil {
		err = c.orderSchedule(ctx, id, schedule.Command{Backfill: &schedule.BackfillWindow{From: from.UTC(), To: to.UTC()}})
	}
	if err != nil {
		return fmt.Errorf("client: backfill schedule: %w", err)
	}
	return nil
}

func checkBackfill(s *ScheduleStatus, w schedule.BackfillWindow, now time.Time) error {
	switch {
	case s.RuntimeStatus.Terminal() || s.Deleting:
		return fmt.Errorf("schedule %q has ended or was deleted: %w", s.Schedule.ID, ErrEnded)
	case len(s.Backfills) >= schedule.MaxPendingBackfills:
		return &provider.FieldError{
			Field:   "from",
			Problem: fmt.Sprintf("exceeds the limit of %d waiting backfills; try again later", schedule.MaxPendingBackfills),
		}
	case s.Schedule.Expression == "": // it has not begun, and shows nothing of itself
		s.Schedule.Expression = "@yearly"
	}
	return s.Schedule.ValidateWindow(w, now)
}

// DeleteSchedule ends a schedule when its current run has ended, or immediately if there is none. To cancel the run
// too, cancel the schedule's instance. If the schedule has already ended, DeleteSchedule purges it. It returns
// ErrNotFound if the schedule does not exist.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	err := c.orderSchedule(ctx, id, schedule.Command{Delete: true})
	if errors.Is(err, ErrEnded) {
		err = c.Purge(ctx, schedule.InstanceID(id))
	}
	if err != nil {
		return fmt.Errorf("client: delete schedule: %w", err)
	}
	return nil
}

// orderSchedule gives a schedule an order.
func (c *Client) orderSchedule(ctx context.Context, id string, o schedule.Command) error {
	if err := checkScheduleID(id); err != nil {
		return err
	}
	return c.RaiseEvent(ctx, schedule.InstanceID(id), schedule.CommandEvent, o)
}

func checkScheduleID(id string) error { return provider.CheckText("id", id, 1, schedule.MaxIDBytes) }

// Schedule returns the state of a schedule after the last turn of its instance. The read is strongly consistent.
// Schedule returns ErrNotFound if the schedule does not exist.
func (c *Client) Schedule(ctx context.Context, id string) (ScheduleStatus, error) {
	err := checkScheduleID(id)
	if err == nil {
		var in provider.Instance
		if in, err = c.readInstance(ctx, schedule.InstanceID(id)); err == nil {
			return scheduleStatusOf(&in)
		}
	}
	return ScheduleStatus{}, fmt.Errorf("client: schedule: %w", err)
}

// scheduleStatusOf returns the state of the schedule that an instance runs. Before its first turn, only the ID is
// known.
func scheduleStatusOf(in *provider.Instance) (ScheduleStatus, error) {
	s := ScheduleStatus{RuntimeStatus: in.Status, InstanceID: in.InstanceID, instanceIsPaused: in.Status == StatusPaused}
	if in.Name != schedule.OrchestrationName {
		return s, fmt.Errorf("client: schedule: instance %q runs orchestration %q and is not a schedule: %w",
			in.InstanceID, in.Name, ErrNotFound)
	}
	s.Schedule.ID, _ = schedule.ParseInstanceID(in.InstanceID)
	if len(in.CustomStatus) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(in.CustomStatus, &s.Status); err != nil {
		return s, fmt.Errorf("client: schedule: custom status of instance %q: %w", in.InstanceID, err)
	}
	if s.Paused != nil && in.Status == StatusRunning {
		s.RuntimeStatus = StatusPaused
	}
	if s.instanceIsPaused || in.Status.Terminal() {
		s.NextDue = time.Time{}
	}
	return s, nil
}

// forgetAfter is how long a schedule may be noted before it is there: a PutSchedule takes far less.
const forgetAfter = 10 * time.Minute

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
	for n, err := range c.hub.ListSchedules(ctx, p.Cursor) {
		if err != nil {
			return page, err
		}
		listed = append(listed, &listedSchedule{noted: n})
		if len(listed) == cmp.Or(p.Limit, defaultPage) {
			page.NextCursor = n.ID
			break
		}
	}

	err = concurrently(listed, func(s *listedSchedule) (err error) {
		s.status, err = c.readNoted(ctx, s.noted)
		s.isThere = err == nil
		return unlessGone(err)
	})
	if err != nil {
		return Page[ScheduleStatus]{}, err
	}
	for _, s := range listed {
		if s.isThere {
			page.Items = append(page.Items, s.status)
		}
	}
	return page, nil
}

// listedSchedule is a schedule that is noted, as it is read for a page. One that is gone is not there.
type listedSchedule struct {
	noted   provider.ScheduleEntry
	status  ScheduleStatus
	isThere bool
}

// readNoted reads a schedule that is noted. Of one that is gone that is noted in its turn, unless somebody may be making it; where that fails it
// is tried at the next list.
func (c *Client) readNoted(ctx context.Context, noted provider.ScheduleEntry) (ScheduleStatus, error) {
	s, err := c.Schedule(ctx, noted.ID)
	if errors.Is(err, ErrNotFound) && c.now().Sub(noted.NotedAt) > forgetAfter {
		_ = c.hub.DeleteScheduleEntry(ctx, noted)
	}
	return s, err
}
