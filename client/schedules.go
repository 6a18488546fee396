package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// ScheduleStatus is the state of a schedule. Its JSON is that of the HTTP API.
type ScheduleStatus struct {
	schedule.Status

	// RuntimeStatus is that of the schedule's instance: Running as a rule, Paused, or what keeps it from starting runs.
	RuntimeStatus RuntimeStatus `json:"status"`
	// InstanceID is the instance that the schedule is: its history says what it started when.
	InstanceID string `json:"instanceId"`
}

// PutSchedule makes a schedule, or changes the one of that id: what it runs, runs on, and the times that come are those of the new one. A pause
// stays. Repeating it changes nothing.
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

// RunSchedule has a schedule start a run now, as if it had come due: behind the run that is under way, or as its overlap policy has it. It returns the
// run's instance id. A paused schedule starts it when it is resumed, and one that was deleted and is not over yet counts it as missed. It returns
// ErrNotFound when there is no such schedule, and ErrTerminal when it is over.
func (c *Client) RunSchedule(ctx context.Context, id string) (runID string, err error) {
	at := c.now().UTC().Truncate(time.Millisecond)
	if err := c.orderSchedule(ctx, id, schedule.Order{Run: at}); err != nil {
		return "", fmt.Errorf("client: run schedule: %w", err)
	}
	return schedule.RunID(id, at), nil
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

// PauseSchedule has a schedule start no runs until ResumeSchedule; the run that is under way goes on. It is Pause of the schedule's instance, with
// its errors.
func (c *Client) PauseSchedule(ctx context.Context, id, message string) error {
	if err := checkScheduleID(id); err != nil {
		return fmt.Errorf("client: pause schedule: %w", err)
	}
	return c.Pause(ctx, schedule.InstanceID(id), message)
}

// ResumeSchedule ends a pause: what came due meanwhile is made up for as the schedule's CatchUp has it. It is Resume of the schedule's
// instance, with its errors.
func (c *Client) ResumeSchedule(ctx context.Context, id, message string) error {
	if err := checkScheduleID(id); err != nil {
		return fmt.Errorf("client: resume schedule: %w", err)
	}
	return c.Resume(ctx, schedule.InstanceID(id), message)
}

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
	s := ScheduleStatus{RuntimeStatus: in.Status, InstanceID: in.InstanceID}
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
	var noted []provider.NotedSchedule
	for n, err := range c.hub.ListSchedules(ctx, p.Cursor) {
		if err != nil {
			return page, err
		}
		noted = append(noted, n)
		if len(noted) == cmp.Or(p.Limit, defaultPage) {
			page.NextCursor = n.ID
			break
		}
	}

	read := make([]ScheduleStatus, len(noted))
	failed := make([]error, len(noted))
	var reading sync.WaitGroup
	places := make(chan struct{}, schedulesAtOnce)
	for i := range noted {
		places <- struct{}{}
		reading.Go(func() {
			read[i], failed[i] = c.readNoted(ctx, noted[i])
			<-places
		})
	}
	reading.Wait()

	for i, err := range failed {
		switch {
		case err == nil:
			page.Items = append(page.Items, read[i])
		case !errors.Is(err, ErrNotFound):
			return Page[ScheduleStatus]{}, err
		}
	}
	return page, nil
}

// schedulesAtOnce is how many instances a page of schedules reads side by side.
const schedulesAtOnce = 16

// readNoted reads a schedule that is noted. Of one that is gone that is noted in its turn, unless somebody may be making it; where that fails it
// is tried at the next list.
func (c *Client) readNoted(ctx context.Context, noted provider.NotedSchedule) (ScheduleStatus, error) {
	s, err := c.Schedule(ctx, noted.ID)
	if errors.Is(err, ErrNotFound) && c.now().Sub(noted.NotedAt) > forgetAfter {
		_ = c.hub.ForgetSchedule(ctx, noted)
	}
	return s, err
}
