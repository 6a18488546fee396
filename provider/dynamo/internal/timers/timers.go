// Package timers sends timers to the timers queue, and holds long ones as EventBridge schedules or by sending them
// again.
package timers

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/perdure/perdure/provider/dynamo/internal/attempts"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
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
	attempts *attempts.Store
}

// New returns the timers of a hub.
func New(api API, q *sqsqueue.Queues, s *segments.Store, a *attempts.Store, c Config) *Timers {
	return &Timers{Config: c, api: api, queue: q, segments: s, attempts: a}
}

// HasSchedules reports whether timers can have schedules.
func (tm *Timers) HasSchedules() bool { return tm.UseSchedules && tm.api != nil }
