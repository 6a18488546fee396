package timers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// scheduleLister contains the call that lists schedules. *scheduler.Client implements it, and emulations can.
type scheduleLister interface {
	ListSchedules(
		ctx context.Context, in *scheduler.ListSchedulesInput, opts ...func(*scheduler.Options),
	) (*scheduler.ListSchedulesOutput, error)
}

// DeleteAllSchedules deletes the schedules of the hub's group page by page, and reports the number of each page.
func (tm *Timers) DeleteAllSchedules(ctx context.Context, report func(deleted int)) error {
	admin, ok := tm.api.(scheduleLister)
	if !ok {
		return fmt.Errorf("dynamo: Scheduler.ListSchedules: %w", awscall.ErrUnsupported)
	}
	in := &scheduler.ListSchedulesInput{GroupName: &tm.ScheduleGroup}
	for {
		var out *scheduler.ListSchedulesOutput
		err := awscall.DoWithTimeout(ctx, "Scheduler.ListSchedules", func(ctx context.Context) (err error) {
			out, err = admin.ListSchedules(ctx, in)
			return err
		})
		if err != nil {
			return err
		}

		var deleted atomic.Int64
		err = awscall.ForEach(len(out.Schedules), func(i int) error {
			err := tm.deleteNamed(ctx, out.Schedules[i].Name)
			if err == nil {
				deleted.Add(1)
			}
			return err
		})
		if n := deleted.Load(); n > 0 {
			report(int(n))
		}
		if err != nil {
			return err
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return nil
		}
	}
}

func (tm *Timers) deleteNamed(ctx context.Context, name *string) error {
	return awscall.DoWithTimeout(ctx, "Scheduler.DeleteSchedule", func(ctx context.Context) error {
		_, err := tm.api.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: name, GroupName: &tm.ScheduleGroup})
		if _, gone := errors.AsType[*schedulertypes.ResourceNotFoundException](err); gone {
			return nil
		}
		return err
	})
}

// MayHaveStarted reports whether an attempt that is due at a time may have started, by the clock of its worker.
func (tm *Timers) MayHaveStarted(at time.Time) bool { return at.Sub(tm.Now()) <= clockSkew }

// The limits of a turn for deleting the schedules of cancelled timers.
const (
	MaxDeletions = 2000            // schedules
	deletionTime = 2 * time.Second // or a quarter of the remaining time of the invocation if that is less
)

// DeleteSchedules deletes the schedules of cancelled timers, and of attempts of cancelled activities. It is best
// effort. It runs after the commit, so that a timer that was not cancelled is never lost. It runs after all outputs of
// the turn, because other instances wait for them (R15). A remaining schedule fires, and the turn drops its message.
func (tm *Timers) DeleteSchedules(ctx context.Context, executionID string, cancelled []history.OpenItem) {
	var held []provider.Timer
	retried := map[int64]bool{}
	for i := range cancelled {
		o := &cancelled[i]
		if tm.MayHaveSchedule(o) {
			held = append(held, provider.Timer{ExecutionID: executionID, TimerID: o.ID})
		}
		if tm.MayHaveAttemptTimer(o) {
			retried[o.ID] = o.WaitsForCancellation
		}
	}
	if len(held)+len(retried) == 0 {
		return
	}

	ctx, stop := tm.limitDeletion(ctx)
	defer stop()

	waiting, err := tm.attemptTimers(ctx, executionID, retried)
	held = append(held, waiting...)
	failed := tm.deleteAllOf(ctx, held[:min(len(held), MaxDeletions)])
	left := len(failed) + max(0, len(held)-MaxDeletions)
	if left > 0 || err != nil {
		tm.Log.WarnContext(ctx, "deleting schedules of cancelled timers failed",
			"event", logevent.TimerScheduleDeleteFailed, "execution", executionID, "deleted", len(held)-left,
			"left", left, "error", errors.Join(append(failed[:min(len(failed), 1)], err)...))
	}
}

// limitDeletion limits the time that a turn spends on schedules.
func (tm *Timers) limitDeletion(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := deletionTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(tm.Now())/4) //nolint:mnd // a quarter
	}
	return context.WithTimeout(ctx, limit)
}

// deleteAllOf deletes the schedules of timers until ctx ends, and returns an error for each schedule that may remain.
func (tm *Timers) deleteAllOf(ctx context.Context, timers []provider.Timer) (failed []error) {
	errs := make([]error, len(timers))
	_ = awscall.ForEach(len(timers), func(i int) error { // the errors are in errs
		if errs[i] = context.Cause(ctx); errs[i] == nil {
			errs[i] = tm.deleteScheduleOf(ctx, &timers[i])
		}
		return nil
	})
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// attemptTimers returns the timers of attempts for which activities wait, if they may have a schedule. The attempt
// record contains the current attempt. An awaited attempt that may have started is omitted, because its timer starts
// the worker that reports its end (SendActivityEnds).
func (tm *Timers) attemptTimers(
	ctx context.Context, executionID string, activities map[int64]bool,
) (waiting []provider.Timer, err error) {
	for r, err := range activityrecords.ReadRetriesOf(ctx, tm.attempts, executionID, activities) {
		if err != nil {
			return waiting, err
		}
		attempt := history.OpenItem{ScheduledAt: r.FailedAt, FireAt: r.At}
		if r.Pending != nil { // its schedule is not deleted, and fires without effect
			attempt.FireAt = r.NextCheckAt
		}
		if waits := activities[r.ActivityID]; tm.MayHaveSchedule(&attempt) && (!waits || !tm.MayHaveStarted(r.At)) {
			waiting = append(
				waiting, provider.Timer{ExecutionID: executionID, TimerID: r.ActivityID, Attempt: r.Attempt},
			)
		}
		if len(waiting) > MaxDeletions {
			break
		}
	}
	return waiting, nil
}

// deleteUnawaited deletes the schedules of an execution's timers that were cancelled, or whose execution ended, while
// their messages were in the queue (R15). The check detects the cancels of every turn that commits before it. A turn
// that commits later deletes the schedule itself, because the schedule then exists. If the function crashes before the
// check, its records are redelivered. The check costs one strongly consistent query for a batch's timers of an
// execution. It reads the segments since the timers were sent, of up to a quarter of an hour.
func (tm *Timers) deleteUnawaited(ctx context.Context, timers []provider.Timer) error {
	waits, err := tm.segments.ReadAwaitedTimers(ctx, timers)
	if err != nil {
		return err
	}
	var deletions []func() error
	for i := range timers {
		if _, waited := waits.Open(timers[i].TimerID); !waited {
			deletions = append(deletions, func() error { return tm.deleteUnneeded(ctx, &timers[i]) })
		}
	}
	return awscall.Parallel(deletions...)
}

// deleteUnneeded deletes a new schedule that is not needed. If that fails, the schedule fires without effect.
func (tm *Timers) deleteUnneeded(ctx context.Context, t *provider.Timer) error {
	err := tm.deleteScheduleOf(ctx, t)
	if failed, ok := errors.AsType[*provider.Error](err); ok && !failed.Retryable {
		tm.Log.WarnContext(ctx, "deleting schedules of cancelled timers failed",
			"event", logevent.TimerScheduleDeleteFailed, "execution", t.ExecutionID, "timerId", t.TimerID, "left", 1,
			"error", err)
		return nil
	}
	return err
}

// clockSkew is the maximum difference between the clocks of two functions.
const clockSkew = 2 * time.Second

// MayHaveSchedule reports whether a timer may have a schedule. A timer gets a schedule only after the maximum delay in
// the queue. A schedule deletes itself after it has fired.
func (tm *Timers) MayHaveSchedule(o *history.OpenItem) bool {
	return tm.mayHaveLeftQueue(o.ScheduledAt) && o.FireAt.Sub(o.ScheduledAt) > 2*tm.queue.MaxDelay-clockSkew &&
		o.FireAt.After(tm.Now())
}

// MayHaveAttemptTimer reports whether an attempt of the activity may wait for a timer with a schedule.
func (tm *Timers) MayHaveAttemptTimer(o *history.OpenItem) bool {
	return o.MayHaveRetryTimer && tm.mayHaveLeftQueue(o.ScheduledAt)
}

// mayHaveLeftQueue reports whether a timer that was sent at a time may have left the timers queue.
func (tm *Timers) mayHaveLeftQueue(sentAt time.Time) bool {
	return tm.UseSchedules && tm.api != nil && tm.Now().Sub(sentAt) > tm.queue.MaxDelay-clockSkew
}

func (tm *Timers) deleteScheduleOf(ctx context.Context, t *provider.Timer) error {
	name := ScheduleName(t)
	return tm.deleteNamed(ctx, &name)
}
