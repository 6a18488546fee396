package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The values of HubConfig.TimerMode. It selects how to hold timers that exceed the maximum delay of a queue.
const (
	TimersSchedules = "schedules" // a one-time EventBridge schedule sends them to the queue
	TimersRequeue   = "hops"      // they are sent again with the maximum delay until they are due
)

// The timing of timers and its limits.
const (
	maxDelay = dynamoknobs.LongestDelay // the maximum delay of an SQS message (a quota)
	// scheduleUnit is the unit to which the time of a schedule is rounded down.
	scheduleUnit = time.Second
)

// The limits of a schedule that cannot reach the queue. It retries for as long as Scheduler allows, and then sends the
// timer to the dead-letter queue.
const (
	scheduleRetryAge = 24 * time.Hour
	scheduleRetries  = 185
)

// scheduleTime is the format of a time in an at expression.
const scheduleTime = "2006-01-02T15:04:05"

// checkTiming rejects settings with which timers would be requeued forever, or with which the message of a schedule
// would create the same schedule again: its name would still be in use, and the timer would be lost.
func (p *Provider) checkTiming() error {
	switch {
	case p.queue.MaxDelay < time.Second || p.queue.MaxDelay > maxDelay:
		return &provider.FieldError{
			Field:   "longestDelay",
			Problem: fmt.Sprintf("is %v, but must be 1s to %v", p.queue.MaxDelay, maxDelay),
		}
	case p.lead < 0:
		return &provider.FieldError{
			Field:   "scheduleLead",
			Problem: fmt.Sprintf("is %v, but must not be negative", p.lead),
		}
	case p.hub.TimerMode == TimersSchedules && p.lead+scheduleUnit > p.queue.MaxDelay:
		return &provider.FieldError{
			Field: "scheduleLead",
			Problem: fmt.Sprintf("is %v, but must be at least a second less than the longest delay, %v", p.lead,
				p.queue.MaxDelay),
		}
	}
	return nil
}

// needsSchedule reports whether a timer needs a schedule. A queue delay costs nothing besides the message, and a
// schedule costs more.
func (p *Provider) needsSchedule(t *provider.Timer) bool {
	return p.hub.TimerMode == TimersSchedules && t.FireAt.Sub(p.now()) > p.queue.MaxDelay
}

func (p *Provider) scheduleTimers(ctx context.Context, timers []provider.Timer) error {
	if len(timers) == 0 {
		return nil
	}
	if err := p.canSchedule(); err != nil {
		return fmt.Errorf("dynamo: hub %q: timers require schedules: %w", p.queue.Hub, err)
	}

	var creations []func() error
	byExecution := map[string][]provider.Timer{}
	made := map[string]bool{}
	for i := range timers {
		if name := scheduleName(&timers[i]); !made[name] { // a queue can deliver a timer twice
			made[name] = true
			creations = append(creations, func() error { return p.createSchedule(ctx, &timers[i]) })
			byExecution[timers[i].ExecutionID] = append(byExecution[timers[i].ExecutionID], timers[i])
		}
	}

	if err := awscall.Parallel(creations...); err != nil {
		return err
	}

	var looks []func() error
	for _, executionID := range slices.Sorted(maps.Keys(byExecution)) {
		looks = append(looks, func() error { return p.lookAgain(ctx, byExecution[executionID]) })
	}
	return awscall.Parallel(looks...)
}

// canSchedule returns an error if the hub lacks settings for schedules. New does not require them from processes that
// hold no timers.
func (p *Provider) canSchedule() error {
	client := ""
	if p.schedules != nil {
		client = "there"
	}
	return missing(
		[2]string{"scheduleGroup", p.hub.ScheduleGroup}, [2]string{"scheduleRoleArn", p.hub.ScheduleRoleARN},
		[2]string{"timersArn", p.hub.TimersARN}, [2]string{"timersDeadLettersArn", p.hub.TimersDeadLettersARN},
		[2]string{"Clients.Schedules", client},
	)
}

// scheduleReplacer contains a call of *scheduler.Client that emulators can implement.
type scheduleReplacer interface {
	UpdateSchedule(ctx context.Context, in *scheduler.UpdateScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.UpdateScheduleOutput, error)
}

// replaceTries is the number of tries to create a schedule that exists and is deleted before it is replaced.
const replaceTries = 3

// createSchedule creates a schedule that sends the timer to its queue. Its name is unique to the timer, so that a
// repetition finds it (R1) and replaces it by the same schedule. After a restore, or in a hub with other queues, a
// schedule of the name can exist with another time or target. Replacing it is one call, during which the timer always
// has a schedule, and happens long before the schedule's time (checkTiming).
func (p *Provider) createSchedule(ctx context.Context, t *provider.Timer) error {
	in, err := p.scheduleOf(t)
	if err != nil {
		return err
	}
	for range replaceTries {
		exists := false
		err = awscall.Do(ctx, "Scheduler.CreateSchedule", t.InstanceID, func() error {
			again := *in // the SDK adds its token to the input
			_, err := p.schedules.CreateSchedule(ctx, &again)
			_, exists = errors.AsType[*types.ConflictException](err)
			if exists {
				return nil
			}
			return err
		})
		replacer, can := p.schedules.(scheduleReplacer)
		if err != nil || !exists || !can {
			return err
		}

		err = awscall.Do(ctx, "Scheduler.UpdateSchedule", t.InstanceID, func() error {
			again := scheduler.UpdateScheduleInput(*in)
			_, err := replacer.UpdateSchedule(ctx, &again)
			return err
		})
		if _, gone := errors.AsType[*types.ResourceNotFoundException](err); !gone {
			return err
		}
	}
	return err
}

func (p *Provider) scheduleOf(t *provider.Timer) (*scheduler.CreateScheduleInput, error) {
	sent := *t
	sent.Hub = p.queue.Hub
	message, err := sqsqueue.NewEntry(&sent, t.TimerID, sqsqueue.BodyLimit)
	if err != nil {
		return nil, fmt.Errorf("dynamo: timer %d of instance %q: %w", t.TimerID, t.InstanceID, err)
	}
	at := t.FireAt.Add(-p.lead).UTC().Truncate(scheduleUnit)
	return &scheduler.CreateScheduleInput{
		Name:                       aws.String(scheduleName(t)),
		GroupName:                  &p.hub.ScheduleGroup,
		ScheduleExpression:         aws.String("at(" + at.Format(scheduleTime) + ")"),
		ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion:      types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &p.hub.TimersARN, RoleArn: &p.hub.ScheduleRoleARN, Input: &message.Body,
			DeadLetterConfig: &types.DeadLetterConfig{Arn: &p.hub.TimersDeadLettersARN},
			RetryPolicy: &types.RetryPolicy{
				MaximumEventAgeInSeconds: aws.Int32(int32(scheduleRetryAge / time.Second)), MaximumRetryAttempts: aws.Int32(scheduleRetries),
			},
		},
	}, nil
}

// scheduleName returns the name of a timer's schedule. It is unique because event IDs are unique in an execution. An
// activity has one name for its schedule-to-close timeout, and one for each waiting attempt.
func scheduleName(t *provider.Timer) string {
	if t.Attempt > 0 {
		return table.Digest("retry", t.ExecutionID, strconv.FormatInt(t.TimerID, 10), strconv.Itoa(t.Attempt))
	}
	return table.Digest("timer", t.ExecutionID, strconv.FormatInt(t.TimerID, 10))
}

// The limits of a turn for deleting the schedules of cancelled timers.
const (
	mostDropped = 2000            // schedules
	dropTime    = 2 * time.Second // or a quarter of the remaining time of the invocation if that is less
)

// dropSchedules deletes the schedules that cancelled timers may have, and those of attempts of cancelled activities. It
// is best effort. It runs after the commit, so that a timer that was not cancelled is never lost, and after all outputs
// of the turn, because other instances wait for them (R15). A remaining schedule fires, and the turn drops its message.
func (p *Provider) dropSchedules(ctx context.Context, executionID string, cancelled []history.OpenItem) {
	var held []provider.Timer
	retried := map[int64]bool{}
	for i := range cancelled {
		o := &cancelled[i]
		if p.mayHaveSchedule(o) {
			held = append(held, provider.Timer{ExecutionID: executionID, TimerID: o.ID})
		}
		if p.mayWaitByTimer(o) {
			retried[o.ID] = o.WaitsForCancellation
		}
	}
	if len(held)+len(retried) == 0 {
		return
	}

	ctx, stop := p.timeToDrop(ctx)
	defer stop()

	waiting, err := p.waitingRetries(ctx, executionID, retried)
	held = append(held, waiting...)
	failed := p.deleteSchedules(ctx, held[:min(len(held), mostDropped)])
	left := len(failed) + max(0, len(held)-mostDropped)
	if left > 0 || err != nil {
		p.log.WarnContext(ctx, "deleting schedules of cancelled timers failed",
			"event", logevent.TimerScheduleDeleteFailed, "execution", executionID, "deleted", len(held)-left,
			"left", left, "error", errors.Join(append(failed[:min(len(failed), 1)], err)...))
	}
}

// timeToDrop limits the time that a turn spends on schedules.
func (p *Provider) timeToDrop(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := dropTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(p.now())/4) //nolint:mnd // a quarter
	}
	return context.WithTimeout(ctx, limit)
}

// deleteSchedules deletes the schedules of timers until the time is used up, and returns an error for each schedule
// that may remain.
func (p *Provider) deleteSchedules(ctx context.Context, timers []provider.Timer) (failed []error) {
	errs := make([]error, len(timers))
	deletions := make([]func() error, len(timers))
	for i := range timers {
		deletions[i] = func() error {
			if errs[i] = context.Cause(ctx); errs[i] == nil {
				errs[i] = p.deleteScheduleOf(ctx, &timers[i])
			}
			return nil
		}
	}
	_ = awscall.Parallel(deletions...) // errs has the errors
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// waitingRetries returns the timers of attempts for which activities wait, if they may have a schedule. The attempt
// record contains the current attempt. An awaited attempt that may have started is omitted, because its timer starts
// the worker that reports its end (sendEnds).
func (p *Provider) waitingRetries(ctx context.Context, executionID string, activities map[int64]bool) (waiting []provider.Timer, err error) {
	for r, err := range p.attempts.ReadRetriesOf(ctx, executionID, activities) {
		if err != nil {
			return waiting, err
		}
		attempt := history.OpenItem{ScheduledAt: r.FailedAt, FireAt: r.At}
		if r.Pending != nil { // if its end is awaited, its schedule stays and fires without effect
			attempt.FireAt = r.NextCheckAt
		}
		if waits := activities[r.ActivityID]; p.mayHaveSchedule(&attempt) && (!waits || !p.mayHaveBegun(r.At)) {
			waiting = append(waiting, provider.Timer{ExecutionID: executionID, TimerID: r.ActivityID, Attempt: r.Attempt})
		}
		if len(waiting) > mostDropped {
			break
		}
	}
	return waiting, nil
}

// lookAgain deletes the schedules of an execution's timers that were cancelled, or whose execution ended, while their
// messages were in the queue (R15). The check sees every turn that commits before it. A turn that commits after it
// deletes the schedule itself, which exists by then. If the function dies before the check, its records are
// redelivered. The check costs one strongly consistent query for a batch's timers of an execution. It reads the
// segments since the timers were sent, of up to a quarter of an hour.
func (p *Provider) lookAgain(ctx context.Context, timers []provider.Timer) error {
	waits, err := p.segments.ReadAwaitedTimers(ctx, timers)
	if err != nil {
		return err
	}
	var deletions []func() error
	for i := range timers {
		if _, waited := waits.Open(timers[i].TimerID); !waited {
			deletions = append(deletions, func() error { return p.giveUpSchedule(ctx, &timers[i]) })
		}
	}
	return awscall.Parallel(deletions...)
}

// giveUpSchedule deletes a schedule that was just created and is not needed. If that fails, the schedule fires without
// effect.
func (p *Provider) giveUpSchedule(ctx context.Context, t *provider.Timer) error {
	err := p.deleteScheduleOf(ctx, t)
	if failed, ok := errors.AsType[*provider.Error](err); ok && !failed.Retryable {
		p.log.WarnContext(ctx, "deleting schedules of cancelled timers failed",
			"event", logevent.TimerScheduleDeleteFailed, "execution", t.ExecutionID, "timerId", t.TimerID, "left", 1,
			"error", err)
		return nil
	}
	return err
}

// clockSkew is the maximum difference between the clocks of two functions.
const clockSkew = 2 * time.Second

// mayHaveSchedule reports whether a timer may have a schedule. It gets one only after the maximum delay in the queue,
// and the schedule is deleted when it has fired.
func (p *Provider) mayHaveSchedule(o *history.OpenItem) bool {
	return p.mayBeOutside(o.ScheduledAt) && o.FireAt.Sub(o.ScheduledAt) > 2*p.queue.MaxDelay-clockSkew && o.FireAt.After(p.now())
}

// mayWaitByTimer reports whether an attempt of the activity may wait for a timer with a schedule.
func (p *Provider) mayWaitByTimer(o *history.OpenItem) bool {
	return o.MayHaveRetryTimer && p.mayBeOutside(o.ScheduledAt)
}

// mayBeOutside reports whether a timer that was sent at a time may have left the timers queue.
func (p *Provider) mayBeOutside(sentAt time.Time) bool {
	return p.hub.TimerMode == TimersSchedules && p.schedules != nil && p.now().Sub(sentAt) > p.queue.MaxDelay-clockSkew
}

func (p *Provider) deleteScheduleOf(ctx context.Context, t *provider.Timer) error {
	name := scheduleName(t)
	return p.deleteNamed(ctx, &name)
}
