package simaws

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Limits of EventBridge Scheduler, from the API reference.
const (
	maxScheduleName   = 64
	maxScheduleRetry  = 185
	minScheduleAge    = 60
	maxScheduleAge    = 86400
	maxScheduleInput  = 256 << 10
	scheduleAtPattern = "at(2006-01-02T15:04:05)"
)

// checkSchedule rejects one-time schedules that AWS rejects, and returns the time at which the schedule fires. It also
// rejects times in the past, because AWS does not document their effect.
func (s *Schedules) checkSchedule(in *scheduler.CreateScheduleInput) (at time.Time, err error) {
	switch {
	case !isScheduleName(aws.ToString(in.Name)):
		return at, malformed("name", aws.ToString(in.Name))
	case in.GroupName != nil && !isScheduleName(*in.GroupName):
		return at, malformed("groupName", *in.GroupName)
	case in.FlexibleTimeWindow == nil:
		return at, malformed("flexibleTimeWindow", "null")
	}

	if err := simulated(in); err != nil {
		return at, err
	}

	if err := s.checkTarget(in.Target); err != nil {
		return at, err
	}

	expression := aws.ToString(in.ScheduleExpression)

	at, err = time.Parse(scheduleAtPattern, expression)
	if err != nil || at.Before(s.cloud.now()) {
		return at, refusedSchedule("Invalid Schedule Expression %s.", expression)
	}

	return at, nil
}

// simulated rejects valid schedules that the simulation does not support.
func simulated(in *scheduler.CreateScheduleInput) error {
	expression, zone := aws.ToString(in.ScheduleExpression), aws.ToString(in.ScheduleExpressionTimezone)

	switch {
	case in.FlexibleTimeWindow.Mode != schedulertypes.FlexibleTimeWindowModeOff:
		return unsupported("a flexible time window")
	case in.StartDate != nil || in.EndDate != nil || in.KmsKeyArn != nil ||
		in.State == schedulertypes.ScheduleStateDisabled:
		return unsupported("a schedule with dates, a key or a state")
	case zone != "" && zone != "UTC":
		return unsupported("the time zone " + zone)
	case strings.HasPrefix(expression, "rate(") || strings.HasPrefix(expression, "cron("):
		return unsupported("the recurring schedule " + expression)
	default:
		return nil
	}
}

func (s *Schedules) checkTarget(t *schedulertypes.Target) error {
	switch {
	case t == nil:
		return malformed("target", "null")
	case !strings.HasPrefix(aws.ToString(t.RoleArn), "arn:aws:iam::"):
		return malformed("target.roleArn", aws.ToString(t.RoleArn))
	case !strings.HasPrefix(aws.ToString(t.Arn), "arn:aws:"):
		return malformed("target.arn", aws.ToString(t.Arn))
	case !strings.HasPrefix(*t.Arn, "arn:aws:sqs:") || isFIFO(*t.Arn):
		return unsupported("the schedule's target " + *t.Arn)
	case aws.ToString(t.Input) == "" || len(*t.Input) > maxScheduleInput:
		return malformed("target.input", "...")
	case strings.Contains(*t.Input, "<aws.scheduler."):
		return unsupported("a context attribute in the input of a schedule")
	}

	if d := t.DeadLetterConfig; d != nil &&
		(!strings.HasPrefix(aws.ToString(d.Arn), "arn:aws:sqs:") || isFIFO(*d.Arn)) {
		return malformed("target.deadLetterConfig.arn", aws.ToString(d.Arn))
	}

	return checkRetries(t.RetryPolicy)
}

func checkRetries(p *schedulertypes.RetryPolicy) error {
	if p == nil {
		return nil
	}

	if n := p.MaximumRetryAttempts; n != nil && (*n < 0 || *n > maxScheduleRetry) {
		return malformed("target.retryPolicy.maximumRetryAttempts", strconv.Itoa(int(*n)))
	}

	if n := p.MaximumEventAgeInSeconds; n != nil && (*n < minScheduleAge || *n > maxScheduleAge) {
		return malformed("target.retryPolicy.maximumEventAgeInSeconds", strconv.Itoa(int(*n)))
	}

	return nil
}

// isScheduleName reports whether Scheduler accepts a text as the name of a schedule or a group.
func isScheduleName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}

	return name != "" && len(name) <= maxScheduleName
}

// clampedNanos returns a time as nanoseconds since 1970, limited to the maximum of int64.
func clampedNanos(t time.Time) int64 {
	if last := time.Unix(0, math.MaxInt64); t.After(last) {
		return math.MaxInt64
	}

	return t.UnixNano()
}

func malformed(member, value string) error {
	return refusedSchedule("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint", value,
		member)
}

func refusedSchedule(format string, args ...any) error {
	return &schedulertypes.ValidationException{Message: aws.String(fmt.Sprintf(format, args...))}
}

func scheduleExists(name string) error {
	return &schedulertypes.ConflictException{Message: aws.String("Schedule " + name + " already exists.")}
}

func noSuchSchedule(what string) error {
	return &schedulertypes.ResourceNotFoundException{Message: aws.String(what + " does not exist.")}
}

// SchedulesThrottled returns the error of a request that exceeds Scheduler's rate limit. An [Interceptor] can return
// it.
func SchedulesThrottled() error {
	return &schedulertypes.ThrottlingException{Message: aws.String("Rate exceeded")}
}
