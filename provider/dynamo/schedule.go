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

	"github.com/perdure/perdure/provider"
)

// What Hub.Timers says of timers that are further away than a queue can delay.
const (
	TimersSchedules = "schedules" // a one-time EventBridge schedule brings them back
	TimersHops      = "hops"      // they are sent again with the longest delay until they are due
)

// Timing of timers, and what bounds it.
const (
	maxDelay = 900 * time.Second // the longest an SQS message can be delayed (a quota)
	// scheduleLead is how long before its timer is due a schedule fires. Scheduler may be a minute late, and the queue
	// waits out what is left.
	scheduleLead = 2 * time.Minute
	// scheduleUnit is what the time of a schedule is rounded down to.
	scheduleUnit = time.Second
)

// What a schedule does when the queue cannot be reached: it goes on trying for as long as Scheduler lets it, and then
// leaves the timer in the dead letters.
const (
	scheduleRetryAge = 24 * time.Hour
	scheduleRetries  = 185
)

// scheduleTime is how an at expression writes a time.
const scheduleTime = "2006-01-02T15:04:05"

// checkTiming refuses what would make timers hop for ever, or a schedule's message ask for the schedule that it came from:
// its name is still taken then, and the timer would be lost.
func (p *Provider) checkTiming() error {
	switch {
	case p.longestDelay < time.Second || p.longestDelay > maxDelay:
		return &provider.FieldError{Field: "longestDelay", Problem: fmt.Sprintf("is %v: not within 1s and %v", p.longestDelay, maxDelay)}
	case p.lead < 0:
		return &provider.FieldError{Field: "scheduleLead", Problem: fmt.Sprintf("is %v: below zero", p.lead)}
	case p.hub.Timers == TimersSchedules && p.lead+scheduleUnit > p.longestDelay:
		return &provider.FieldError{
			Field: "scheduleLead", Problem: fmt.Sprintf("is %v: not a second less than the longest delay, %v", p.lead, p.longestDelay),
		}
	}
	return nil
}

// needsSchedule: a queue's delay reaches as far as it can for nothing but its message; a schedule costs more.
func (p *Provider) needsSchedule(t *provider.Timer) bool {
	return p.hub.Timers == TimersSchedules && t.FireAt.Sub(p.now()) > p.longestDelay
}

func (p *Provider) scheduleTimers(ctx context.Context, timers []provider.Timer) error {
	if len(timers) == 0 {
		return nil
	}
	if err := p.canSchedule(); err != nil {
		return fmt.Errorf("dynamo: hub %q: timers need schedules: %w", p.hub.Name, err)
	}
	var creations []func() error
	byExecution, made := map[string][]provider.Timer{}, map[string]bool{}
	for i := range timers {
		if name := scheduleName(&timers[i]); !made[name] { // a queue may deliver a timer twice
			made[name] = true
			creations = append(creations, func() error { return p.createSchedule(ctx, &timers[i]) })
			byExecution[timers[i].ExecutionID] = append(byExecution[timers[i].ExecutionID], timers[i])
		}
	}
	if err := together(creations...); err != nil {
		return err
	}
	var looks []func() error
	for _, executionID := range slices.Sorted(maps.Keys(byExecution)) {
		looks = append(looks, func() error { return p.lookAgain(ctx, byExecution[executionID]) })
	}
	return together(looks...)
}

// canSchedule names what a hub lacks that was found without, by those who have no timers to hold.
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

// createSchedule makes a schedule that sends the timer to its queue. Its name is the timer's own, so that a repeat finds it
// there and is done (R1).
func (p *Provider) createSchedule(ctx context.Context, t *provider.Timer) error {
	in, err := p.scheduleOf(t)
	if err != nil {
		return err
	}
	return call(ctx, "Scheduler.CreateSchedule", t.InstanceID, func() error {
		again := *in // the SDK writes its token into the input
		_, err := p.schedules.CreateSchedule(ctx, &again)
		if _, exists := errors.AsType[*types.ConflictException](err); exists {
			return nil
		}
		return err
	})
}

func (p *Provider) scheduleOf(t *provider.Timer) (*scheduler.CreateScheduleInput, error) {
	sent := *t
	sent.Hub = p.hub.Name
	message, err := newEntry(&sent, t.TimerID, bodyLimit)
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
			Arn: &p.hub.TimersARN, RoleArn: &p.hub.ScheduleRoleARN, Input: &message.body,
			DeadLetterConfig: &types.DeadLetterConfig{Arn: &p.hub.TimersDeadLettersARN},
			RetryPolicy: &types.RetryPolicy{
				MaximumEventAgeInSeconds: aws.Int32(int32(scheduleRetryAge / time.Second)), MaximumRetryAttempts: aws.Int32(scheduleRetries),
			},
		},
	}, nil
}

// scheduleName is the timer's alone: an execution's event ids are its own. An activity has one for its schedule-to-close time, and one
// for each attempt that waits.
func scheduleName(t *provider.Timer) string {
	if t.Attempt > 0 {
		return digest("retry", t.ExecutionID, strconv.FormatInt(t.TimerID, 10), strconv.Itoa(t.Attempt))
	}
	return digest("timer", t.ExecutionID, strconv.FormatInt(t.TimerID, 10))
}

// What a turn gives to the schedules of the timers that it has cancelled.
const (
	mostDropped = 2000            // of them
	dropTime    = 2 * time.Second // or a quarter of what the invocation has left, if that is less
)

// dropSchedules deletes those of cancelled timers that may have one, and of the attempts that activities which are given up wait for, at
// best: after the commit, so that a timer is never lost that was not cancelled, and after all else that the turn causes, for which others
// wait (R15). What is left fires, and the turn drops it.
func (p *Provider) dropSchedules(ctx context.Context, executionID string, cancelled []provider.TimerSpan) {
	var held []provider.Timer
	retried := map[int64]bool{}
	for _, span := range cancelled {
		if p.mayHaveSchedule(span) {
			held = append(held, provider.Timer{ExecutionID: executionID, TimerID: span.TimerID})
		}
		if p.mayWaitByTimer(span) {
			retried[span.TimerID] = span.Waits
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
		p.log.WarnContext(ctx, "schedules of cancelled timers were not deleted: they will fire for nothing",
			"execution", executionID, "deleted", len(held)-left, "left", left, "error", errors.Join(append(failed[:min(len(failed), 1)], err)...))
	}
}

// timeToDrop bounds what a turn gives to schedules.
func (p *Provider) timeToDrop(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := dropTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(p.now())/4) //nolint:mnd // a quarter
	}
	return context.WithTimeout(ctx, limit)
}

// deleteSchedules deletes those of timers, for as long as there is time, and returns an error for each that may be left.
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
	_ = together(deletions...) // errs tells
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// waitingRetries are the timers of the attempts that activities wait for, of those that may have a schedule: which attempt an activity is
// at the item says that is written for each.
// What is waited for and may have begun leads to who tells its end (tellEnds).
func (p *Provider) waitingRetries(ctx context.Context, executionID string, activities map[int64]bool) (waiting []provider.Timer, err error) {
	for r, err := range p.retriesOf(ctx, executionID, activities) {
		if err != nil {
			return waiting, err
		}
		if waits := activities[r.ActivityID]; p.mayHaveSchedule(provider.TimerSpan{CreatedAt: r.FailedAt, FireAt: r.At}) && (!waits || !p.mayHaveBegun(r.At)) {
			waiting = append(waiting, provider.Timer{ExecutionID: executionID, TimerID: r.ActivityID, Attempt: r.Attempt})
		}
		if len(waiting) > mostDropped {
			break
		}
	}
	return waiting, nil
}

// lookAgain deletes the schedules of an execution's timers that nobody waits for any more, since they were cancelled, or it ended,
// while their messages were in the queue (R15). A turn that commits before this look, at whatever moment, is seen by it; one that
// commits after it deletes the schedule itself, which is there by then; and a function that dies before the look has its records
// delivered again. It costs one strongly consistent query for a batch's timers of an execution, of what that has committed since it
// sent them: a quarter of an hour's segments.
func (p *Provider) lookAgain(ctx context.Context, timers []provider.Timer) error {
	waits, err := p.waitedFor(ctx, timers)
	if err != nil {
		return err
	}
	var deletions []func() error
	for i := range timers {
		if _, waited := waits[timers[i].TimerID]; !waited {
			deletions = append(deletions, func() error { return p.giveUpSchedule(ctx, &timers[i]) })
		}
	}
	return together(deletions...)
}

// giveUpSchedule deletes a schedule that was just made for nobody. One that may not be deleted fires for nothing.
func (p *Provider) giveUpSchedule(ctx context.Context, t *provider.Timer) error {
	err := p.deleteScheduleOf(ctx, t)
	if failed, ok := errors.AsType[*provider.Error](err); ok && !failed.Retryable {
		p.log.WarnContext(ctx, "schedules of cancelled timers were not deleted: they will fire for nothing", "execution", t.ExecutionID, "timerId", t.TimerID, "left", 1, "error", err)
		return nil
	}
	return err
}

// clockSkew is what the clocks of two functions may differ by.
const clockSkew = 2 * time.Second

// mayHaveSchedule: a timer waits out the longest delay in the queue before it gets a schedule, which is gone when it has fired.
func (p *Provider) mayHaveSchedule(span provider.TimerSpan) bool {
	return p.mayBeOutside(span.CreatedAt) && span.FireAt.Sub(span.CreatedAt) > 2*p.longestDelay-clockSkew && span.FireAt.After(p.now())
}

// mayWaitByTimer: an attempt of the activity may wait for one, with a schedule.
func (p *Provider) mayWaitByTimer(span provider.TimerSpan) bool {
	return span.Retries && p.mayBeOutside(span.CreatedAt)
}

// mayBeOutside reports whether what was sent at a time may be out of the timers queue by now.
func (p *Provider) mayBeOutside(sentAt time.Time) bool {
	return p.hub.Timers == TimersSchedules && p.schedules != nil && p.now().Sub(sentAt) > p.longestDelay-clockSkew
}

func (p *Provider) deleteScheduleOf(ctx context.Context, t *provider.Timer) error {
	name := scheduleName(t)
	return call(ctx, "Scheduler.DeleteSchedule", "", func() error {
		_, err := p.schedules.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: &name, GroupName: &p.hub.ScheduleGroup})
		if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
			return nil
		}
		return err
	})
}
