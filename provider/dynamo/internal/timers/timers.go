// Package timers sends timers to the timers queue. It holds long timers as EventBridge schedules, or resends them
// repeatedly.
package timers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/wire"
)

// API contains the EventBridge Scheduler calls of Timers.
type API interface {
	DeleteSchedule(
		ctx context.Context, in *scheduler.DeleteScheduleInput, opts ...func(*scheduler.Options),
	) (*scheduler.DeleteScheduleOutput, error)
	CreateSchedule(
		ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options),
	) (*scheduler.CreateScheduleOutput, error)
}

// Config configures Timers.
type Config struct {
	// UseSchedules selects schedules for timers that exceed the maximum delay of a queue. The following fields are
	// required for schedules.
	UseSchedules                    bool
	ScheduleGroup, ScheduleRoleARN  string
	TimersARN, TimersDeadLettersARN string
	// ScheduleLead is the time between the firing of a schedule and the due time of its timer.
	ScheduleLead time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Timers sends and holds the timers of a hub. It is safe for concurrent use.
type Timers struct {
	Config

	api      API // nil if there is no client
	queue    *sqsqueue.Queues
	segments *segments.Store
	attempts *activityrecords.Store
}

// New returns the timers of a hub.
func New(api API, q *sqsqueue.Queues, s *segments.Store, a *activityrecords.Store, c Config) *Timers {
	return &Timers{Config: c, api: api, queue: q, segments: s, attempts: a}
}

// HasSchedules reports whether timers can have schedules.
func (tm *Timers) HasSchedules() bool { return tm.UseSchedules && tm.api != nil }

// Decode decodes the records of the timers queue.
func (tm *Timers) Decode(records []provider.Record) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	for _, r := range records {
		t, err := wire.DecodeTimer(r.Body)
		if err == nil {
			err = tm.queue.CheckHub(&t.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		timers = append(timers, provider.LockedTimer{Timer: t, Record: r})
	}
	return timers, unreadable
}

// Hold sends timers to the timers queue with their remaining delay. If a timer exceeds the maximum delay,
// Hold creates a schedule, or sends the timer with the maximum delay if the hub uses TimersRequeue.
func (tm *Timers) Hold(ctx context.Context, timers ...provider.Timer) error {
	var far, near []provider.Timer
	for i := range timers {
		if tm.needsSchedule(&timers[i]) {
			far = append(far, timers[i])
		} else {
			near = append(near, timers[i])
		}
	}
	// Schedules are created first, because their creation can be repeated after a failure, but a sent message cannot be
	// withdrawn.
	if err := tm.scheduleTimers(ctx, far); err != nil {
		return err
	}
	return tm.Send(ctx, near)
}

// Send sends timers to the timers queue with their remaining delay, or the maximum delay.
func (tm *Timers) Send(ctx context.Context, timers []provider.Timer) error {
	entries, err := tm.Encode(timers)
	if err != nil {
		return err
	}
	sent, err := tm.queue.SendAll(ctx, sqsqueue.Outgoing{{URL: tm.queue.TimersURL, Entries: entries}})
	if refused := sent.Rejected; len(refused) > 0 {
		return fmt.Errorf("dynamo: %d timers were rejected: %s %s", len(refused), refused[0].Code, refused[0].Message)
	}
	return err
}

// Encode returns the entries of timers for the timers queue.
func (tm *Timers) Encode(timers []provider.Timer) ([]sqsqueue.Entry, error) {
	entries := make([]sqsqueue.Entry, 0, len(timers))
	for i := range timers {
		t := timers[i]
		t.Hub = tm.queue.Hub
		e, err := newEntry(&t)
		if err != nil {
			return nil, fmt.Errorf("dynamo: timer %d of instance %q: %w", timers[i].TimerID, timers[i].InstanceID, err)
		}
		e.IsEvent = true
		e.Delay = tm.queue.DelayUntil(timers[i].FireAt)
		entries = append(entries, e)
	}
	return entries, nil
}

func newEntry(t *provider.Timer) (sqsqueue.Entry, error) {
	doc, err := wire.EncodeTimer(t)
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	return sqsqueue.NewEntry(doc, t.TimerID, sqsqueue.BodyLimit)
}
