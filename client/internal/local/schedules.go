package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/parallel"
	"github.com/perdure/perdure/client/internal/scheduling"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// InstanceCalls are the calls of a client that schedules consist of.
type InstanceCalls interface {
	// Command raises a schedule's event. An empty event ID is generated.
	Command(ctx context.Context, instanceID string, c schedule.Command, eventID string) error
	Start(ctx context.Context, instanceID string, state *schedule.State) error
	Purge(ctx context.Context, instanceID string) error
	Pause(ctx context.Context, instanceID, message string) error
	Resume(ctx context.Context, instanceID, message string) error
	// Update sends an update and waits for its result. noHandler reports whether the instance has no handler for it,
	// because it runs in a release without pauses of schedules.
	Update(ctx context.Context, instanceID, update, message string) (result string, noHandler bool, err error)
	// SendUpdate sends an update and does not wait.
	SendUpdate(ctx context.Context, instanceID, update, message string) error
}

// Schedules are the schedules of a hub. They are safe for concurrent use.
type Schedules struct {
	Hub   *hub.Hub
	Calls InstanceCalls
}

// ScheduleStatus is client.ScheduleStatus.
type ScheduleStatus struct {
	schedule.Status

	RuntimeStatus    provider.RuntimeStatus
	InstanceID       string
	InstanceIsPaused bool
}

// scheduleTimeout limits the wait for a schedule's response to a pause or resume, and for an ending schedule to apply a
// put. The schedule may be blocked.
const scheduleTimeout = 20 * time.Second

// Put creates a schedule or replaces its settings.
func (s Schedules) Put(ctx context.Context, settings *schedule.Schedule) error {
	entry := provider.ScheduleEntry{ID: settings.ID, NotedAt: s.Hub.Now().UTC()}
	if err := s.Hub.PutScheduleEntry(ctx, entry); err != nil {
		return err
	}
	return s.put(ctx, settings)
}

// maxPutAttempts limits the attempts to put a schedule that another caller creates or deletes at the same time.
const maxPutAttempts = 4

// put changes a schedule, or starts it if it does not exist or has ended.
func (s Schedules) put(ctx context.Context, settings *schedule.Schedule) (err error) {
	instanceID := schedule.InstanceID(settings.ID)
	for range maxPutAttempts {
		err = s.Calls.Command(ctx, instanceID, schedule.Command{Replace: settings}, "")
		if err == nil {
			err = s.waitUntilApplied(ctx, settings)
		}
		if errors.Is(err, provider.ErrEnded) {
			purged := s.Calls.Purge(ctx, instanceID)
			if errors.Is(purged, provider.ErrNotEnded) { // another caller has started it again
				err = purged
				continue
			}
			if purged != nil && !errors.Is(purged, provider.ErrNotFound) {
				return purged
			}
			err = provider.ErrNotFound
		}
		if !errors.Is(err, provider.ErrNotFound) {
			return err
		}
		err = s.Calls.Start(ctx, instanceID, &schedule.State{Schedule: *settings})
		if !errors.Is(err, provider.ErrAlreadyExists) {
			return err
		}
	}
	return err
}

// waitUntilApplied waits until a schedule that is about to end has applied a change, because it does not receive the
// change after its end. It returns ErrEnded or ErrNotFound if the schedule ended without the change.
func (s Schedules) waitUntilApplied(ctx context.Context, settings *schedule.Schedule) error {
	short, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	instanceID := schedule.InstanceID(settings.ID)
	err := s.Hub.WaitUntil(short, instanceID, func(ctx context.Context) (done bool, err error) {
		is, err := s.Get(ctx, settings.ID)
		if err == nil && is.RuntimeStatus.Terminal() {
			err = provider.ErrEnded
		}
		return !scheduling.EndsSoon(&is.Status, is.RuntimeStatus) || scheduling.HasSettings(&is.Status, settings), err
	})
	if err == nil || short.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("schedule is ending and did not apply the change within %v; try again", scheduleTimeout)
}

// Trigger starts a run. The key determines the time of the run and the ID of the event.
func (s Schedules) Trigger(ctx context.Context, id, key string) (runID string, err error) {
	at := s.Hub.Now().UTC().Truncate(time.Millisecond)
	if key != "" {
		u, err := ulid.ParseStrict(key)
		if err != nil {
			return "", fmt.Errorf("key: %w", err)
		}
		at = ulid.Time(u.Time()).UTC()
	}
	c := schedule.Command{RunAt: at, Manual: true}
	if err := s.Calls.Command(ctx, schedule.InstanceID(id), c, key); err != nil {
		return "", err
	}
	return schedule.RunID(id, at), nil
}

// Backfill runs past times.
func (s Schedules) Backfill(ctx context.Context, id string, w schedule.BackfillWindow) error {
	is, err := s.Get(ctx, id)
	if err == nil {
		err = scheduling.CheckBackfill(is.Status, is.RuntimeStatus, w, s.Hub.Now())
	}
	if err != nil {
		return err
	}
	return s.Calls.Command(ctx, schedule.InstanceID(id), schedule.Command{
		Backfill: &schedule.BackfillWindow{From: w.From.UTC(), To: w.To.UTC()},
	}, "")
}

// Delete ends a schedule, or purges it if it has ended.
func (s Schedules) Delete(ctx context.Context, id string) error {
	err := s.Calls.Command(ctx, schedule.InstanceID(id), schedule.Command{Delete: true}, "")
	if errors.Is(err, provider.ErrEnded) {
		err = s.Calls.Purge(ctx, schedule.InstanceID(id))
	}
	return err
}

// Get returns the status of a schedule.
func (s Schedules) Get(ctx context.Context, id string) (status ScheduleStatus, err error) {
	in, err := s.Hub.Instance(ctx, schedule.InstanceID(id))
	if err != nil {
		return status, err
	}
	status.InstanceID, status.InstanceIsPaused = in.InstanceID, in.Status == provider.StatusPaused
	status.Status, status.RuntimeStatus, err = scheduling.ReadStatus(&in)
	return status, err
}

// entryTimeout is the time after which an entry without a schedule is deleted. A call of Put takes much less time.
const entryTimeout = 10 * time.Minute

// listed is an entry of a page with the schedule that it names, if the schedule exists.
type listed struct {
	entry  provider.ScheduleEntry
	status ScheduleStatus
	exists bool
}

// List returns a page of schedules. The cursor is the last ID of the previous page.
func (s Schedules) List(
	ctx context.Context, limit int, cursor string,
) (items []ScheduleStatus, next string, err error) {
	var all []*listed
	for entry, err := range s.Hub.ListSchedules(ctx, cursor) {
		if err != nil {
			return nil, "", err
		}
		all = append(all, &listed{entry: entry})
		if len(all) == limit {
			next = entry.ID
			break
		}
	}
	err = parallel.Each(all, func(x *listed) (err error) {
		x.status, err = s.readEntry(ctx, x.entry)
		x.exists = err == nil
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	for _, x := range all {
		if x.exists {
			items = append(items, x.status)
		}
	}
	return items, next, nil
}

// readEntry reads the schedule of an entry. It deletes an entry whose schedule does not exist, unless a caller may be
// creating the schedule. The next list repeats a deletion that fails.
func (s Schedules) readEntry(ctx context.Context, entry provider.ScheduleEntry) (ScheduleStatus, error) {
	status, err := s.Get(ctx, entry.ID)
	if errors.Is(err, provider.ErrNotFound) && s.Hub.Now().Sub(entry.NotedAt) > entryTimeout {
		_ = s.Hub.DeleteScheduleEntry(ctx, entry)
	}
	return status, err
}

// Pause pauses a schedule. A paused instance parks the update, so that Pause does not wait for its response.
func (s Schedules) Pause(ctx context.Context, id, message string) error {
	status, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	instanceID := schedule.InstanceID(id)
	if status.InstanceIsPaused {
		return s.Calls.SendUpdate(ctx, instanceID, schedule.UpdatePause, message)
	}
	_, noHandler, err := s.update(ctx, instanceID, schedule.UpdatePause, message)
	if noHandler {
		err = s.Calls.Pause(ctx, instanceID, message)
	}
	return err
}

// Resume resumes a schedule and its instance, and reports whether either was paused. The resumed instance may have a
// parked pause of the schedule, which its status does not show. In an older release, a pause of the instance is the
// only one.
func (s Schedules) Resume(ctx context.Context, id, message string) (wasPaused bool, err error) {
	instanceID := schedule.InstanceID(id)
	status, err := s.Get(ctx, id)
	if err == nil && status.InstanceIsPaused {
		err = s.Calls.Resume(ctx, instanceID, message)
	}
	if err != nil {
		return false, err
	}
	paused, noHandler, err := s.update(ctx, instanceID, schedule.UpdateResume, message)
	switch {
	case noHandler && status.InstanceIsPaused:
		return true, nil
	case noHandler:
		return true, s.Calls.Resume(ctx, instanceID, message)
	default:
		return paused == "true" || status.InstanceIsPaused, err
	}
}

// update sends an update to a schedule and waits for the response.
func (s Schedules) update(
	ctx context.Context, instanceID, update, message string,
) (result string, noHandler bool, err error) {
	ctx, stop := context.WithTimeout(ctx, scheduleTimeout)
	defer stop()
	return s.Calls.Update(ctx, instanceID, update, message)
}
