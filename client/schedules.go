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

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// ScheduleStatus is the state of a schedule. Its JSON is that of the HTTP API.
type ScheduleStatus struct {
	schedule.Status

	// RuntimeStatus is that of the schedule's instance: Running as a rule, or what keeps it from starting runs. It is Paused where the schedule is, with Status.Paused,
	// and where its instance is, without: then runs by hand wait, too.
	RuntimeStatus RuntimeStatus `json:"status"`
	// InstanceID is the instance that the schedule is: its history says what it started when.
	InstanceID string `json:"instanceId"`

	instanceIsPaused bool
}

// PutSchedule makes a schedule, or changes the one of that id: what it runs, runs on, and the times that come are those of the new one. A pause
// stays. Repeating it changes nothing.
//
// Where the schedule is about to end, since it was deleted or its times are over, the call waits until this was taken, so that it is not lost behind the end: after 20 s
// it is an error, and PutSchedule is to be called again.
//
// It returns a *provider.FieldError for what is wrong with the schedule, and ErrUnknownOrchestration where no build is deployed that knows
// schedules. Whether one knows the orchestration that is to be started is found out by the runs.
//
// A schedule costs two turns for each of its times beside its runs, with schedule.Allow one, and a timer.
func (c *Client) PutSchedule(ctx context.Context, s schedule.Schedule) error {
	err := s.Validate()
	if err == nil {
		err = c.hub.NoteSchedule(ctx, provider.NotedSchedule{ID: s.ID, NotedAt: c.now().UTC()})
	}
	if err == nil {
		err = c.putNoted(ctx, &s)
	}
	if err != nil {
		return fmt.Errorf("client: put schedule %q: %w", provider.Echo(s.ID), err)
	}
	return nil
}

// putTries bounds how often a schedule that another caller makes, or deletes, at the same time is tried.
const putTries = 4

// putNoted changes the schedule, or starts it where there is none or where it is over.
func (c *Client) putNoted(ctx context.Context, s *schedule.Schedule) (err error) {
	instanceID := schedule.InstanceID(s.ID)
	for range putTries {
		err = c.Raise(ctx, instanceID, schedule.EventOrder, schedule.Order{Set: s})
		if err == nil {
			err = c.seeTaken(ctx, s)
		}
		if errors.Is(err, ErrTerminal) {
			gone := c.Purge(ctx, instanceID)
			if errors.Is(gone, ErrNotTerminal) { // somebody else has started it anew
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
		_, err = c.Start(ctx, schedule.Orchestration, schedule.Beginning{Schedule: *s}, WithInstanceID(instanceID))
		if !errors.Is(err, ErrAlreadyExists) {
			return err
		}
	}
	return err
}

// seeTaken waits where the schedule is about to end, until it has taken what it is put to: what comes behind its end is received by nobody. It returns
// ErrTerminal, or ErrNotFound, where it has ended without.
func (c *Client) seeTaken(ctx context.Context, s *schedule.Schedule) error {
	short, stop := context.WithTimeout(ctx, scheduleAnswer)
	defer stop()
	err := c.lookWaiting(short, schedule.InstanceID(s.ID), func(ctx context.Context) (done bool, err error) {
		is, err := c.Schedule(ctx, s.ID)
		if err == nil && is.RuntimeStatus.Terminal() {
			err = ErrTerminal
		}
		return !is.lingers() || is.shows(s), err
	})
	if err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("it was to end, and has not taken this within %v: put it again", scheduleAnswer)
}

// lingers reports whether the schedule ends in a while, unless it is put to go on. One that stands still takes all orders first when it goes on.
func (s *ScheduleStatus) lingers() bool {
	begun := s.Schedule.When != ""
	return begun && s.RuntimeStatus == StatusRunning && s.Running == nil && (s.Ending || s.Next.IsZero())
}

// shows reports whether it is as it was put, as far as that is shown.
func (s *ScheduleStatus) shows(put *schedule.Schedule) bool {
	as := *put
	as.Input = nil
	want, _ := json.Marshal(&as)       //nolint:errchkjson // texts and times that were validated
	is, _ := json.Marshal(&s.Schedule) //nolint:errchkjson // as they were read
	return !s.Ending && bytes.Equal(want, is)
}

// RunSchedule has a schedule start a run now, as if it had come due: behind the run that is under way, or as its overlap policy has it. It returns the
// run's instance id. A schedule that is paused starts it, too; one whose instance is, by Pause, when that is resumed, and one that was deleted and is not over yet
// counts it as missed. It returns ErrNotFound when there is no such schedule, and ErrTerminal when it is over.
func (c *Client) RunSchedule(ctx context.Context, id string) (runID string, err error) {
	at := c.now().UTC().Truncate(time.Millisecond)
	if err := c.orderSchedule(ctx, id, schedule.Order{Run: at, ByHand: true}); err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return schedule.RunID(id, at), nil
}

// BackfillSchedule has a schedule start the runs that it would have had in a part of the past, both ends inclusive: each time of it that has no run yet gets one,
// with the id that it would have had, in their order, however often it is asked for. Times from before the schedule was made count, as far as its From and Until allow. A
// run that has failed is there, and one that was purged is not.
//
// The runs go one after the other, behind what waits in the schedule's queue, and with schedule.Allow beside each other. What comes due meanwhile is not left out, and
// cancels none of them: it is started before the rest. A paused schedule goes on with it when it is resumed; DeleteSchedule ends it.
//
// It returns a *provider.FieldError for a window that is reversed, ends in the future, or has more than schedule.MaxBackfill times, and while schedule.MaxBackfills of them
// wait; else the errors of RunSchedule. It takes a release everywhere that knows of it: one before leaves it undone.
func (c *Client) BackfillSchedule(ctx context.Context, id string, from, to time.Time) error {
	s, err := c.Schedule(ctx, id)
	if err == nil {
		err = checkBackfill(&s, schedule.Window{From: from, To: to}, c.now())
	}
	if err == nil {
		err = c.orderSchedule(ctx, id, schedule.Order{Backfill: &schedule.Window{From: from.UTC(), To: to.UTC()}})
	}
	if err != nil {
		return fmt.Errorf("client: backfill schedule: %w", err)
	}
	return nil
}

func checkBackfill(s *ScheduleStatus, w schedule.Window, now time.Time) error {
	switch {
	case s.RuntimeStatus.Terminal() || s.Ending:
		return fmt.Errorf("schedule %q is over, or was deleted: %w", s.Schedule.ID, ErrTerminal)
	case len(s.Backfills) >= schedule.MaxBackfills:
		return &provider.FieldError{Field: "from", Problem: fmt.Sprintf("and to come while %d other windows wait", schedule.MaxBackfills)}
	case s.Schedule.When == "": // it has not begun, and shows nothing of itself
		s.Schedule.When = "@yearly"
	}
	return s.Schedule.CheckWindow(w, now)
}

// DeleteSchedule ends a schedule: at once, or when the run that is under way is over. To cancel that run as well, cancel the schedule's
// instance. One that is over already is purged. It returns ErrNotFound when there is no such schedule.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	err := c.orderSchedule(ctx, id, schedule.Order{End: true})
	if errors.Is(err, ErrTerminal) {
		err = c.Purge(ctx, schedule.InstanceID(id))
	}
	if err != nil {
		return fmt.Errorf("client: delete schedule: %w", err)
	}
	return nil
}

// orderSchedule gives a schedule an order.
func (c *Client) orderSchedule(ctx context.Context, id string, o schedule.Order) error {
	if err := checkScheduleID(id); err != nil {
		return err
	}
	return c.Raise(ctx, schedule.InstanceID(id), schedule.EventOrder, o)
}

func checkScheduleID(id string) error { return checkText("id", id, 1, schedule.MaxIDBytes) }

// Schedule reads a schedule, strongly consistent: as it was when its instance last ran. It returns ErrNotFound when there is none.
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

// scheduleStatusOf is what an instance shows of the schedule that it is. One that has not begun, or that failed to begin, shows its id alone.
func scheduleStatusOf(in *provider.Instance) (ScheduleStatus, error) {
	s := ScheduleStatus{RuntimeStatus: in.Status, InstanceID: in.InstanceID, instanceIsPaused: in.Status == StatusPaused}
	if in.Name != schedule.Orchestration {
		return s, fmt.Errorf("client: schedule: instance %q is of orchestration %q, and no schedule: %w", in.InstanceID, in.Name, ErrNotFound)
	}
	s.Schedule.ID, _ = schedule.IDOf(in.InstanceID)
	if len(in.CustomStatus) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(in.CustomStatus, &s.Status); err != nil {
		return s, fmt.Errorf("client: schedule: custom status of instance %q: %w", in.InstanceID, err)
	}
	if s.Paused != nil && in.Status == StatusRunning {
		s.RuntimeStatus = StatusPaused
	}
	return s, nil
}

// forgetAfter is how long a schedule may be noted before it is there: a PutSchedule takes far less.
const forgetAfter = 10 * time.Minute

// Schedules yields all schedules, by their ids. It ends with the first error.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[ScheduleStatus, error] {
	return eachOfPages(func(p Paging) (Page[ScheduleStatus], error) { return c.SchedulesPage(ctx, p) })
}

// SchedulesPage reads a page of Schedules. Beside a page of ids it reads the instance of each, some side by side.
func (c *Client) SchedulesPage(ctx context.Context, p Paging) (Page[ScheduleStatus], error) {
	page, err := c.schedulesPage(ctx, p)
	if err != nil {
		return page, fmt.Errorf("client: schedules: %w", err)
	}
	return page, nil
}

func (c *Client) schedulesPage(ctx context.Context, p Paging) (page Page[ScheduleStatus], err error) {
	if err := errors.Join(checkLimit(p.Limit), checkCursor(p.Cursor)); err != nil {
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
	noted   provider.NotedSchedule
	status  ScheduleStatus
	isThere bool
}

// readNoted reads a schedule that is noted. Of one that is gone that is noted in its turn, unless somebody may be making it; where that fails it
// is tried at the next list.
func (c *Client) readNoted(ctx context.Context, noted provider.NotedSchedule) (ScheduleStatus, error) {
	s, err := c.Schedule(ctx, noted.ID)
	if errors.Is(err, ErrNotFound) && c.now().Sub(noted.NotedAt) > forgetAfter {
		_ = c.hub.ForgetSchedule(ctx, noted)
	}
	return s, err
}
