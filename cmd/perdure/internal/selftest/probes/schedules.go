package probes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// scheduleProbes checks assumptions about EventBridge Scheduler.
type scheduleProbes struct {
	clock

	Schedules dynamo.ScheduleAPI
	Hub       dynamo.HubConfig
	Queues    *queueClient
	// DeadURL is a queue for dead letters of schedules.
	DeadURL string
}

func (p *scheduleProbes) checks() []Check {
	return []Check{
		{Name: "schedule-replace", Assumptions: []string{"A102"}, Run: p.nameInUse},
		{Name: "schedule-list", Assumptions: []string{"A108"}, Run: p.list},
	}
}

// slowChecks returns the checks that wait for a schedule.
func (p *scheduleProbes) slowChecks() []Check {
	return []Check{{
		Name: "schedule-dead-letter", Assumptions: []string{"A103", "A104", "A105"}, Run: p.deadLetter, Slow: true,
	}}
}

// at returns a schedule that sends a message to the queue for timers.
func (p *scheduleProbes) at(name string, at time.Time) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name: &name, GroupName: &p.Hub.ScheduleGroup,
		ScheduleExpression:    aws.String("at(" + at.UTC().Format("2006-01-02T15:04:05") + ")"),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &p.Hub.TimersARN, RoleArn: &p.Hub.ScheduleRoleARN, Input: aws.String("{}"),
		},
	}
}

// create creates a schedule. The SDK adds a token to the input, with which a second call would be a repetition.
func (p *scheduleProbes) create(ctx context.Context, in *scheduler.CreateScheduleInput) error {
	once := *in
	if _, err := p.Schedules.CreateSchedule(ctx, &once); err != nil {
		return fmt.Errorf("create schedule: %w", err)
	}
	return nil
}

func (p *scheduleProbes) delete(ctx context.Context, in *scheduler.CreateScheduleInput) error {
	if _, err := p.Schedules.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{
		Name: in.Name, GroupName: in.GroupName,
	}); err != nil {
		return undecided(fmt.Errorf("delete schedule: %w", err))
	}
	return nil
}

const (
	// year is the time until a schedule is due that is deleted before.
	year          = 365 * 24 * time.Hour
	schedulePause = time.Second
)

// nameInUse creates two schedules with the same name, and deletes the first one.
func (p *scheduleProbes) nameInUse(ctx context.Context) (string, error) {
	in := p.at("selftest-name-in-use", p.Now().Add(year))
	if err := p.create(ctx, in); err != nil {
		return "", undecided(err)
	}
	second := p.create(ctx, in)
	if err := p.delete(ctx, in); err != nil {
		return "", err
	}
	if _, ok := errors.AsType[*types.ConflictException](second); !ok {
		return "", cmpErr(second, "a second schedule with the same name is accepted")
	}
	return "ConflictException", nil
}

// scheduleLister contains the call that lists schedules.
type scheduleLister interface {
	ListSchedules(ctx context.Context, in *scheduler.ListSchedulesInput, opts ...func(*scheduler.Options)) (
		*scheduler.ListSchedulesOutput, error,
	)
}

const (
	listed     = 9 // schedules
	listPage   = 3
	listPrefix = "selftest-list-"
	listLag    = 3 * time.Second // of other replicas
)

// list creates schedules, lists them in pages, and deletes those of a page before it reads the next one.
func (p *scheduleProbes) list(ctx context.Context) (string, error) {
	api, ok := p.Schedules.(scheduleLister)
	if !ok {
		return "", undecided(errors.New("the client cannot list schedules"))
	}
	for n := range listed {
		if err := p.create(ctx, p.at(listPrefix+strconv.Itoa(n), p.Now().Add(year))); err != nil {
			return "", undecided(err)
		}
	}
	in := &scheduler.ListSchedulesInput{GroupName: &p.Hub.ScheduleGroup, NamePrefix: aws.String(listPrefix)}
	if err := p.untilRead(ctx, time.Minute, schedulePause, func() (missing, err error) {
		out, err := api.ListSchedules(ctx, in)
		if err == nil && len(out.Schedules) != listed {
			missing = undecided(fmt.Errorf("a list has %d of %d schedules", len(out.Schedules), listed))
		}
		return missing, err
	}); err != nil {
		return "", err
	}
	in.MaxResults = aws.Int32(listPage)
	deleted, err := p.deletePages(ctx, api, in)
	if err != nil {
		return "", err
	}
	if deleted < listed {
		return "", fmt.Errorf("pages of %d schedules omit %d of %d while others are deleted", listPage, listed-deleted,
			listed)
	}
	return fmt.Sprintf("%d schedules in pages of %d, each deleted before the next page", listed, listPage), nil
}

// deletePages deletes the schedules of a list page by page, and returns their number.
func (p *scheduleProbes) deletePages(
	ctx context.Context, api scheduleLister, in *scheduler.ListSchedulesInput,
) (int, error) {
	deleted := map[string]bool{}
	for {
		if err := p.Sleep(ctx, listLag); err != nil {
			return 0, undecided(err)
		}
		out, err := api.ListSchedules(ctx, in)
		if err != nil {
			return 0, undecided(err)
		}
		for i := range out.Schedules {
			name := *out.Schedules[i].Name
			if deleted[name] { // the list was late
				continue
			}
			if err := p.delete(ctx, p.at(name, p.Now())); err != nil {
				return 0, err
			}
			deleted[name] = true
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return len(deleted), nil
		}
	}
}

// deadLetter creates a schedule whose target does not exist. When that has failed, its name must become free, and again
// when a second schedule with the name is deleted.
func (p *scheduleProbes) deadLetter(ctx context.Context) (string, error) {
	const name, soon = "selftest-dead-letter", 5 * time.Second
	const minimumAge = 60 // seconds
	dead, err := p.queueARN(ctx, p.DeadURL)
	if err != nil {
		return "", err
	}
	began := p.Now()
	in := p.at(name, began.Add(soon))
	in.Target.Arn = aws.String(p.Hub.TimersARN + "-missing")
	in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: dead}
	in.Target.RetryPolicy = &types.RetryPolicy{
		MaximumEventAgeInSeconds: aws.Int32(minimumAge), MaximumRetryAttempts: aws.Int32(0),
	}
	if err := p.create(ctx, in); err != nil {
		return "", undecided(err)
	}
	const limit = 4 * time.Minute // the local clock may be wrong
	if err := p.until(ctx, limit, schedulePause, func() (missing, err error) {
		received, err := p.Queues.poll(ctx, p.DeadURL, locked)
		if err == nil && len(received) == 0 {
			missing = fmt.Errorf("no dead letter of an undeliverable schedule in %v", limit)
		}
		return missing, undecided(err)
	}); err != nil {
		return "", err
	}
	undelivered := p.Now()
	again := p.at(name, undelivered.Add(year))
	for _, state := range []string{"undelivered", "deleted"} {
		if err := p.createWhenFree(ctx, again, state); err != nil {
			return "", err
		}
		if err := p.delete(ctx, again); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("dead letter after %v, name free after %v", undelivered.Sub(began).Round(time.Second),
		p.Now().Sub(undelivered).Round(time.Second)), nil
}

// createWhenFree creates a schedule when its name is free. The state is that of the schedule that had the name.
func (p *scheduleProbes) createWhenFree(
	ctx context.Context, in *scheduler.CreateScheduleInput, state string,
) error {
	const limit = 3 * time.Minute
	return p.until(ctx, limit, schedulePause, func() (missing, err error) {
		err = p.create(ctx, in)
		if _, inUse := errors.AsType[*types.ConflictException](err); inUse {
			return fmt.Errorf("the name of a schedule that was %s is in use in %v", state, limit), nil
		}
		return nil, undecided(err)
	})
}

// queueARN returns the ARN of a queue.
func (p *scheduleProbes) queueARN(ctx context.Context, url string) (*string, error) {
	const name = sqstypes.QueueAttributeNameQueueArn
	out, err := p.Queues.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{name},
	})
	if err != nil {
		return nil, undecided(err)
	}
	return aws.String(out.Attributes[string(name)]), nil
}
