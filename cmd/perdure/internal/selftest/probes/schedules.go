package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

func (p *Probes) scheduleChecks() []Check {
	return []Check{{Name: "schedule-replace", Assumptions: []string{"A102"}, Run: p.nameInUse}}
}

// nameInUse creates two schedules with the same name, a year before they are due, and deletes the first one.
func (p *Probes) nameInUse(ctx context.Context) (string, error) {
	const year = 365 * 24 * time.Hour
	in := &scheduler.CreateScheduleInput{
		Name: aws.String("selftest-name-in-use"), GroupName: &p.Hub.ScheduleGroup,
		ScheduleExpression: aws.String("at(" + p.Now().Add(year).UTC().Format("2006-01-02T15:04:05") + ")"),
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target: &types.Target{
			Arn: &p.Hub.TimersARN, RoleArn: &p.Hub.ScheduleRoleARN, Input: aws.String("{}"),
		},
	}
	if _, err := p.Schedules.CreateSchedule(ctx, in); err != nil {
		return "", undecided(fmt.Errorf("create schedule: %w", err))
	}
	_, second := p.Schedules.CreateSchedule(ctx, in)
	if _, err := p.Schedules.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{
		Name: in.Name, GroupName: in.GroupName,
	}); err != nil {
		return "", undecided(fmt.Errorf("delete schedule: %w", err))
	}
	if _, ok := errors.AsType[*types.ConflictException](second); !ok {
		return "", cmpErr(second, "a second schedule with the same name is accepted")
	}
	return "ConflictException", nil
}
