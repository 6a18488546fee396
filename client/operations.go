package client

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/cancellog"
	"github.com/perdure/perdure/client/internal/leasing"
	"github.com/perdure/perdure/client/internal/remote"
	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// operations is a hub as a Client uses it. local implements it with a provider, and remote.Reader with the HTTP API.
// The methods of Client check the input, and name the call in errors.
type operations interface {
	changes
	reads
}

type changes interface {
	Send(ctx context.Context, operation string, m provider.Message) (before RuntimeStatus, err error)
	Annotate(ctx context.Context, instanceID string, n Note) error
	CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error
	Purge(ctx context.Context, instanceID string, o purgeOptions) error
	Renew(ctx context.Context, visibility time.Duration, leases []leasing.Lease) ([]leasing.Renewal, error)
	Start(ctx context.Context, s *provider.Start, o *startOptions) error
	StartAndRaise(
		ctx context.Context, s *provider.Start, o *startOptions, m provider.Message,
	) (started bool, err error)
	StartAndUpdate(
		ctx context.Context, s *provider.Start, o *startOptions, u *updating.Update,
	) (r *provider.UpdateResult, started, pending bool, err error)
	Restart(ctx context.Context, instanceID string, o *startOptions) (newID string, err error)
	RunUpdate(ctx context.Context, u *updating.Update) (r *provider.UpdateResult, pending bool, err error)
	CallEntity(
		ctx context.Context, entity, key string, u *updating.Update,
	) (r *provider.UpdateResult, pending bool, err error)
}

// reads are strongly consistent, except List. The reads of an execution select the current one if the ID is empty.
type reads interface {
	Status(ctx context.Context, instanceID string) (Status, error)
	Wait(ctx context.Context, instanceID string) (Status, error)
	WaitForStart(ctx context.Context, instanceID string) (Status, error)
	List(ctx context.Context, q *provider.ListQuery) (items []Status, next string, err error)
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error]
	ExecutionsPage(
		ctx context.Context, instanceID string, limit int, cursor string,
	) (items []provider.Execution, next string, err error)
	CurrentExecution(ctx context.Context, instanceID string) (executionID string, err error)
	Events(ctx context.Context, of history.ExecutionRef, after int64) iter.Seq2[history.Event, error]
	Cancellations(ctx context.Context, of history.ExecutionRef) iter.Seq2[cancellog.Cancellation, error]
	CancellationsPage(
		ctx context.Context, of history.ExecutionRef, limit int, cursor string,
	) (cancellog.Page, error)
	Pending(ctx context.Context, of history.ExecutionRef, limit int) (Pending, error)
}

// scheduleOperations are the schedules of a hub. localSchedules implements them with the calls of a Client, and
// remote.Schedules with the HTTP API.
type scheduleOperations interface {
	Put(ctx context.Context, settings *schedule.Schedule) error
	Trigger(ctx context.Context, id, key string) (runID string, err error)
	Backfill(ctx context.Context, id string, w schedule.BackfillWindow) error
	Delete(ctx context.Context, id string) error
	Schedule(ctx context.Context, id string) (ScheduleStatus, error)
	ListSchedules(ctx context.Context, limit int, cursor string) (items []ScheduleStatus, next string, err error)
	Pause(ctx context.Context, id, message string) error
	Resume(ctx context.Context, id, message string) (wasPaused bool, err error)
}

// attempts are the attempts of activities, by their completion tokens.
type attempts interface {
	Complete(ctx context.Context, token string, result any) error
	Fail(ctx context.Context, token string, err error) error
	Heartbeat(ctx context.Context, token string, details any) (provider.CancelInfo, error)
}

var (
	_ operations         = local{}
	_ operations         = remote.Reader[Status, Pending]{}
	_ scheduleOperations = localSchedules{}
	_ scheduleOperations = remote.Schedules[ScheduleStatus]{}
)
