package timers

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

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The timing of timers and its limits.
const (
	MaxDelay = dynamoknobs.LongestDelay // the maximum delay of an SQS message (a quota)
	// scheduleUnit is the unit to which the time of a schedule is rounded down.
	scheduleUnit = time.Second
)

// The limits of a schedule that cannot reach the queue. Scheduler retries for the maximum time, and then sends the
// timer to the dead-letter queue.
const (
	scheduleRetryAge = 24 * time.Hour
	scheduleRetries  = 185
)

// scheduleTime is the format of a time in an at expression.
const scheduleTime = "2006-01-02T15:04:05"

// CheckTiming rejects settings with which timers would be requeued forever. It also rejects settings with which the
// message of a schedule would create the same schedule again. EventBridge deletes a schedule after it has sent its
// message, and could so delete the new one. The timer would be lost.
func (tm *Timers) CheckTiming() error {
	switch {
	case tm.queue.MaxDelay < time.Second || tm.queue.MaxDelay > MaxDelay:
		return &provider.FieldError{
			Field:   "longestDelay",
			Problem: fmt.Sprintf("is %v, but must be 1s to %v", tm.queue.MaxDelay, MaxDelay),
		}
	case tm.ScheduleLead < 0:
		return &provider.FieldError{
			Field:   "scheduleLead",
			Problem: fmt.Sprintf("is %v, but must not be negative", tm.ScheduleLead),
		}
	case tm.UseSchedules && tm.ScheduleLead+scheduleUnit > tm.queue.MaxDelay:
		return &provider.FieldError{
			Field: "scheduleLead",
			Problem: fmt.Sprintf(
				"is %v, but must be at least a second less than the longest delay, %v", tm.ScheduleLead,
				tm.queue.MaxDelay,
			),
		}
	}
	return nil
}

// needsSchedule reports whether a timer needs a schedule. A delay in the queue costs only the message, which is cheaper
// than a schedule.
func (tm *Timers) needsSchedule(t *provider.Timer) bool {
	return tm.UseSchedules && t.FireAt.Sub(tm.Now()) > tm.queue.MaxDelay
}

func (tm *Timers) scheduleTimers(ctx context.Context, timers []provider.Timer) error {
	if len(timers) == 0 {
		return nil
	}
	if err := tm.checkConfig(); err != nil {
		return fmt.Errorf("dynamo: hub %q: timers require schedules: %w", tm.queue.Hub, err)
	}

	var creations []func() error
	byExecution := map[string][]provider.Timer{}
	made := map[string]bool{}
	for i := range timers {
		if name := ScheduleName(&timers[i]); !made[name] { // a queue can deliver a timer twice
			made[name] = true
			creations = append(creations, func() error { return tm.createSchedule(ctx, &timers[i]) })
			byExecution[timers[i].ExecutionID] = append(byExecution[timers[i].ExecutionID], timers[i])
		}
	}

	if err := awscall.Parallel(creations...); err != nil {
		return err
	}

	var reads []func() error
	for _, executionID := range slices.Sorted(maps.Keys(byExecution)) {
		reads = append(reads, func() error { return tm.deleteUnawaited(ctx, byExecution[executionID]) })
	}
	return awscall.Parallel(reads...)
}

// checkConfig returns an error if the hub lacks settings for schedules. New does not require them from processes that
// hold no timers.
func (tm *Timers) checkConfig() error {
	client := ""
	if tm.api != nil {
		client = "there"
	}
	for _, required := range [][2]string{
		{"scheduleGroup", tm.ScheduleGroup},
		{"scheduleRoleArn", tm.ScheduleRoleARN},
		{"timersArn", tm.TimersARN},
		{"timersDeadLettersArn", tm.TimersDeadLettersARN},
		{"Clients.Schedules", client},
	} {
		if required[1] == "" {
			return &provider.FieldError{Field: required[0], Problem: "is missing"}
		}
	}
	return nil
}

// scheduleReplacer contains a call of *scheduler.Client that emulators can implement.
type scheduleReplacer interface {
	UpdateSchedule(
		ctx context.Context, in *scheduler.UpdateScheduleInput, opts ...func(*scheduler.Options),
	) (*scheduler.UpdateScheduleOutput, error)
}

// replaceTries is the number of tries to create a schedule that exists and is deleted before it is replaced.
const replaceTries = 3

// createSchedule creates a schedule that sends the timer to its queue. Its name is unique to the timer, so that a
// repetition finds it (R1) and replaces it by the same schedule. After a restore, or in a hub with other queues, a
// schedule of the name can exist with another time or target. One call replaces the schedule, so that the timer always
// has one. It runs long before the schedule's time (CheckTiming).
func (tm *Timers) createSchedule(ctx context.Context, t *provider.Timer) error {
	in, err := tm.newSchedule(t)
	if err != nil {
		return err
	}
	for range replaceTries {
		exists := false
		err = awscall.Do(ctx, "Scheduler.CreateSchedule", t.InstanceID, func() error {
			again := *in // the SDK adds its token to the input
			_, err := tm.api.CreateSchedule(ctx, &again)
			_, exists = errors.AsType[*types.ConflictException](err)
			if exists {
				return nil
			}
			return err
		})
		replacer, can := tm.api.(scheduleReplacer)
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

func (tm *Timers) newSchedule(t *provider.Timer) (*scheduler.CreateScheduleInput, error) {
	sent := *t
	sent.Hub = tm.queue.Hub
	message, err := newEntry(&sent)
	if err != nil {
		return nil, fmt.Errorf("dynamo: timer %d of instance %q: %w", t.TimerID, t.InstanceID, err)
	}
	at := t.FireAt.Add(-tm.ScheduleLead).UTC().Truncate(scheduleUnit)
	return &scheduler.CreateScheduleInput{
		Name:                       aws.String(ScheduleName(t)),
		GroupName:                  &tm.ScheduleGroup,
		ScheduleExpression:         aws.String("at(" + at.Format(scheduleTime) + ")"),
		ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion:      types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &tm.TimersARN, RoleArn: &tm.ScheduleRoleARN, Input: &message.Body,
			DeadLetterConfig: &types.DeadLetterConfig{Arn: &tm.TimersDeadLettersARN},
			RetryPolicy: &types.RetryPolicy{
				MaximumEventAgeInSeconds: aws.Int32(int32(scheduleRetryAge / time.Second)),
				MaximumRetryAttempts:     aws.Int32(scheduleRetries),
			},
		},
	}, nil
}

// ScheduleName returns the name of a timer's schedule. It is unique because event IDs are unique in an execution. An
// activity has one schedule name for its schedule-to-close timeout, and one for each waiting attempt.
func ScheduleName(t *provider.Timer) string {
	if t.Attempt > 0 {
		return table.Digest("retry", t.ExecutionID, strconv.FormatInt(t.TimerID, 10), strconv.Itoa(t.Attempt))
	}
	return table.Digest("timer", t.ExecutionID, strconv.FormatInt(t.TimerID, 10))
}
