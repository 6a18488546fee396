package dynamo

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/wire"
)

// fakeSchedules records creations and deletions, and returns the errors of response and deletion.
type fakeSchedules struct {
	created  []*scheduler.CreateScheduleInput
	response func(n int) error

	mu       sync.Mutex // deletions are concurrent
	deleted  []string
	deletion func(n int) error
}

func (s *fakeSchedules) DeleteSchedule(
	_ context.Context, in *scheduler.DeleteScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.DeleteScheduleOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, aws.ToString(in.GroupName)+"/"+aws.ToString(in.Name))
	if s.deletion == nil {
		return &scheduler.DeleteScheduleOutput{}, nil
	}
	return &scheduler.DeleteScheduleOutput{}, s.deletion(len(s.deleted))
}

func (s *fakeSchedules) CreateSchedule(
	_ context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.CreateScheduleOutput, error) {
	s.created = append(s.created, in)
	if s.response == nil {
		return &scheduler.CreateScheduleOutput{}, nil
	}
	if err := s.response(len(s.created)); err != nil {
		return nil, &smithy.OperationError{ServiceID: "Scheduler", OperationName: "CreateSchedule", Err: err}
	}
	return &scheduler.CreateScheduleOutput{}, nil
}

// emptyTable has no history, so every timer is pending.
type emptyTable struct{ TableAPI }

func (emptyTable) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
	*dynamodb.QueryOutput, error,
) {
	return &dynamodb.QueryOutput{}, nil
}

// scheduling returns the configuration of a hub whose long timers need schedules.
func scheduling() HubConfig {
	return HubConfig{
		Name: "h", Table: "t", InboxURL: "inbox", TimersURL: "timers", TimerMode: TimersSchedules,
		ScheduleGroup:   "perdure-h",
		ScheduleRoleARN: "arn:role", TimersARN: "arn:timers", TimersDeadLettersARN: "arn:dead",
	}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func holder(t *testing.T, hub HubConfig, opts ...Option) (*Provider, *sqsfake.Queues, *fakeSchedules) {
	t.Helper()
	q, s := &sqsfake.Queues{}, &fakeSchedules{}
	p, err := New(hub, Clients{Table: emptyTable{}, Queues: q, Schedules: s},
		append([]Option{WithClock(func() time.Time {
			return noon
		})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p, q, s
}

func timerIn(d time.Duration) provider.Timer {
	return provider.Timer{
		V: provider.WireVersion, InstanceID: "order-1", ExecutionID: "01ARZ3", Segment: 4, TimerID: 7,
		FireAt: noon.Add(d),
	}
}

func TestHoldTimers_longTimer_createsItsSchedule(t *testing.T) {
	t.Parallel()
	p, q, s := holder(t, scheduling())
	timer := timerIn(time.Hour + 1700*time.Millisecond)
	timer.FireAt = timer.FireAt.In(time.FixedZone("elsewhere", 7200))
	if err := p.HoldTimers(t.Context(), timer); err != nil {
		t.Fatal(err)
	}
	if len(s.created) != 1 || len(q.Sent) != 0 {
		t.Fatalf("%d schedules, %d sends", len(s.created), len(q.Sent))
	}
	got := *s.created[0]
	back, err := wire.DecodeTimer(*got.Target.Input)
	if err != nil || !back.FireAt.Equal(timer.FireAt) || back.TimerID != 7 || back.ExecutionID != "01ARZ3" ||
		back.InstanceID != "order-1" || back.Segment != 4 {
		t.Errorf("message of the schedule: %+v, error %v", back, err)
	}
	entries, err := p.timers.Encode([]provider.Timer{timer})
	if err != nil || entries[0].Body != *got.Target.Input {
		t.Errorf("queue message %s, message of the schedule %s", entries[0].Body, *got.Target.Input)
	}
	want := scheduler.CreateScheduleInput{
		Name: aws.String(timers.ScheduleName(&timer)), GroupName: aws.String("perdure-h"),
		ScheduleExpression: aws.String("at(2026-05-04T12:58:01)"), ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: aws.String("arn:timers"), RoleArn: aws.String("arn:role"), Input: got.Target.Input,
			DeadLetterConfig: &types.DeadLetterConfig{Arn: aws.String("arn:dead")},
			RetryPolicy: &types.RetryPolicy{
				MaximumEventAgeInSeconds: aws.Int32(86400), MaximumRetryAttempts: aws.Int32(185),
			},
		},
	}
	if diff := cmp.Diff(want, got,
		cmpopts.IgnoreUnexported(want, *want.Target, *want.FlexibleTimeWindow, *want.Target.DeadLetterConfig,
			*want.Target.RetryPolicy)); diff != "" {
		t.Errorf("schedule (-want +got):\n%s", diff)
	}
}

// Scheduler replaces its keywords in an input. An instance ID that looks like a keyword must stay unchanged.
func TestHoldTimers_instanceIDHasSchedulerKeyword_isKept(t *testing.T) {
	t.Parallel()
	p, _, s := holder(t, scheduling())
	timer := timerIn(time.Hour)
	timer.InstanceID = "<aws.scheduler.execution-id> \uFFFF &"
	if err := p.HoldTimers(t.Context(), timer); err != nil {
		t.Fatal(err)
	}
	input := *s.created[0].Target.Input
	back, err := wire.DecodeTimer(input)
	if err != nil || back.InstanceID != timer.InstanceID || strings.ContainsAny(input, "<\uFFFF") {
		t.Errorf("%s is decoded as %q, error %v", input, back.InstanceID, err)
	}
}

// R1: the name of a schedule is unique to its timer and attempt, for any characters in the IDs.
func TestR1_nameOfASchedule_isUniqueToTimerAndAttempt(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)
	names := map[string]bool{}
	for _, execution := range []string{"01ARZ3", "01ARZ31", "ä/ \x00", strings.Repeat("x", 1000)} {
		for _, id := range []int64{1, 11, 111, 1 << 62} {
			timer := provider.Timer{InstanceID: "a", ExecutionID: execution, TimerID: id, FireAt: noon}
			name := timers.ScheduleName(&timer)
			timer.InstanceID, timer.FireAt, timer.Segment = "b", noon.Add(time.Hour), 9
			if again := timers.ScheduleName(&timer); again != name || !allowed.MatchString(name) || names[name] {
				t.Errorf("execution %q, timer %d: name %q, then %q", execution, id, name, again)
			}
			names[name] = true
			for _, attempt := range []int{2, 3} { // each waiting attempt has its own schedule
				timer.Attempt = attempt
				name := timers.ScheduleName(&timer)
				if !allowed.MatchString(name) || names[name] {
					t.Errorf("execution %q, timer %d, attempt %d: name %q", execution, id, attempt, name)
				}
				names[name] = true
			}
		}
	}
}

// Timers within the longest delay of a queue need no schedule. Hubs without schedules create none.
func TestHoldTimers_delayAndTimerMode_determineScheduleOrMessage(t *testing.T) {
	t.Parallel()
	hops := scheduling()
	hops.TimerMode = TimersRequeue
	unsaid := hops
	unsaid.TimerMode = ""
	short := []Option{dynamoknobs.WithLongestDelay(2 * time.Second), dynamoknobs.WithScheduleLead(time.Second)}
	for name, c := range map[string]struct {
		hub     HubConfig
		opts    []Option
		left    time.Duration
		delayed int32 // -1 if a schedule sends it
	}{
		"past":                  {scheduling(), nil, -time.Hour, 0},
		"near":                  {scheduling(), nil, time.Minute + 999*time.Millisecond, 60},
		"the longest delay":     {scheduling(), nil, 900 * time.Second, 900},
		"more":                  {scheduling(), nil, 900*time.Second + 1, -1},
		"ten years":             {scheduling(), nil, 87660 * time.Hour, -1},
		"ten years, hops":       {hops, nil, 87660 * time.Hour, 900},
		"ten years, unsaid":     {unsaid, nil, 87660 * time.Hour, 900},
		"2 s of 2 s":            {scheduling(), short, 2 * time.Second, 2},
		"more than 2 s of 2 s":  {scheduling(), short, 2*time.Second + 1, -1},
		"a minute, hops of 2 s": {hops, short, time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, q, s := holder(t, c.hub, c.opts...)
			if err := p.HoldTimers(t.Context(), timerIn(c.left)); err != nil {
				t.Fatal(err)
			}
			if c.delayed < 0 {
				if len(s.created) != 1 || len(q.Sent) != 0 {
					t.Errorf("%d schedules, %d sends", len(s.created), len(q.Sent))
				}
				at, err := time.Parse("at(2006-01-02T15:04:05)", *s.created[0].ScheduleExpression)
				if early := timerIn(c.left).FireAt.Sub(at); err != nil || early < p.timers.ScheduleLead ||
					early >= p.timers.ScheduleLead+time.Second || at.Before(noon) {
					t.Errorf("schedule at %v, %v before the due time of the timer", at, early)
				}
				return
			}
			if len(s.created) != 0 || len(q.Sent) != 1 || q.Sent[0].Entries[0].DelaySeconds != c.delayed {
				t.Errorf("%d schedules, sent %+v", len(s.created), q.Sent)
			}
		})
	}
}

// A turn sends a message even for a long timer, because most long timers are cancelled within 15 minutes. A client that
// starts an instance with a delay also sends a message, because its role cannot create schedules.
func TestSendOutputs_longTimer_sendsMessageWithoutSchedule(t *testing.T) {
	t.Parallel()
	p, q, s := holder(t, scheduling())
	refused, err := p.outbox.SendOutputs(t.Context(),
		&outputs.Set{Timers: []provider.Timer{timerIn(87660 * time.Hour)}})
	if err != nil || len(refused) > 0 || len(s.created) > 0 || len(q.Sent) != 1 ||
		q.Sent[0].Entries[0].DelaySeconds != 900 {
		t.Errorf("%d schedules, sent %+v, %v %v", len(s.created), q.Sent, refused, err)
	}
}

func TestR1_scheduleExists_isNotAnError(t *testing.T) {
	t.Parallel()
	p, _, s := holder(t, scheduling())
	s.response = func(int) error { return &types.ConflictException{Message: aws.String("Schedule x already exists.")} }
	if err := p.HoldTimers(t.Context(), timerIn(time.Hour)); err != nil || len(s.created) != 1 {
		t.Errorf("%d tries, %v", len(s.created), err)
	}
}

func TestHoldTimers_schedulerThrottles_retries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, s := holder(t, scheduling())
		s.response = func(n int) error {
			if n < 4 {
				return &types.ThrottlingException{Message: aws.String("Rate exceeded")}
			}
			return nil
		}
		if err := p.HoldTimers(t.Context(), timerIn(time.Hour)); err != nil || len(s.created) != 4 {
			t.Errorf("%d tries, %v", len(s.created), err)
		}
	})
}

// An error of Scheduler names the call and the instance, and reports whether it is retryable. No message replaces the
// missing schedule.
func TestHoldTimers_schedulerFails_returnsErrorAndSendsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		retryable bool
	}{
		"validation": {&types.ValidationException{}, false},
		"no group":   {&types.ResourceNotFoundException{}, false},
		"access":     {&smithy.GenericAPIError{Code: "AccessDeniedException"}, false},
		"quota":      {&types.ServiceQuotaExceededException{}, false},
		"throttled":  {&types.ThrottlingException{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, q, s := holder(t, scheduling())
				s.response = func(int) error { return c.err }
				err := p.HoldTimers(t.Context(), timerIn(time.Hour), timerIn(time.Minute))
				e, ok := errors.AsType[*provider.Error](err)
				if !ok || e.Op != "Scheduler.CreateSchedule" || e.InstanceID != "order-1" ||
					e.Retryable != c.retryable {
					t.Errorf("error %v", err)
				}
				if len(q.Sent) > 0 {
					t.Errorf("sent %+v, want no message", q.Sent)
				}
			})
		})
	}
}

// A process without timers may open a hub without the settings of schedules.
func TestHoldTimers_missingField_errorNamesIt(t *testing.T) {
	t.Parallel()
	for field, corrupt := range map[string]func(*HubConfig, *Clients){
		"scheduleGroup":        func(h *HubConfig, _ *Clients) { h.ScheduleGroup = "" },
		"scheduleRoleArn":      func(h *HubConfig, _ *Clients) { h.ScheduleRoleARN = "" },
		"timersArn":            func(h *HubConfig, _ *Clients) { h.TimersARN = "" },
		"timersDeadLettersArn": func(h *HubConfig, _ *Clients) { h.TimersDeadLettersARN = "" },
		"Clients.Schedules":    func(_ *HubConfig, c *Clients) { c.Schedules = nil },
	} {
		h, c := scheduling(), Clients{Queues: &sqsfake.Queues{}, Schedules: &fakeSchedules{}}
		corrupt(&h, &c)
		p, err := New(h, c, WithClock(func() time.Time { return noon }))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.HoldTimers(t.Context(), timerIn(time.Minute)); err != nil {
			t.Errorf("timer within 15 minutes without %s: %v", field, err)
		}
		err = p.HoldTimers(t.Context(), timerIn(time.Hour))
		if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != field {
			t.Errorf("without %s: %v", field, err)
		}
	}
}

func TestNew_invalidTimerSettings_areRejected(t *testing.T) {
	t.Parallel()
	hops := scheduling()
	hops.TimerMode = TimersRequeue
	unknown := scheduling()
	unknown.TimerMode = "sundials"
	for name, c := range map[string]struct {
		hub           HubConfig
		longest, lead time.Duration
		field         string // "" if the settings are valid
	}{
		"defaults":                   {scheduling(), timers.MaxDelay, dynamoknobs.ScheduleLead, ""},
		"short":                      {scheduling(), 2 * time.Second, time.Second, ""},
		"no lead":                    {scheduling(), time.Second, 0, ""},
		"no delay":                   {scheduling(), 0, 0, "longestDelay"},
		"over SQS's":                 {scheduling(), timers.MaxDelay + 1, 0, "longestDelay"},
		"negative lead":              {scheduling(), timers.MaxDelay, -1, "scheduleLead"},
		"lead as long as the delay":  {scheduling(), 2 * time.Second, 2 * time.Second, "scheduleLead"},
		"lead and a second, rounded": {scheduling(), 2 * time.Second, time.Second + 1, "scheduleLead"},
		"hops need no lead":          {hops, 2 * time.Second, dynamoknobs.ScheduleLead, ""},
		"neither schedules nor hops": {unknown, timers.MaxDelay, dynamoknobs.ScheduleLead, "timers"},
	} {
		_, err := New(c.hub, Clients{}, dynamoknobs.WithLongestDelay(c.longest), dynamoknobs.WithScheduleLead(c.lead))
		e, ok := errors.AsType[*provider.FieldError](err)
		if ok != (c.field != "") || ok && e.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A schedule can exist only if its timer was long, has been in the queue for the longest delay, and is not due.
func TestDeleteSchedules_timerCannotHaveSchedule_isSkipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age, length time.Duration
		hops        bool
		deleted     int
	}{
		"in an hour, of a day":     {time.Hour, 24 * time.Hour, false, 1},
		"in the queue still":       {10 * time.Minute, 24 * time.Hour, false, 0},
		"about to get it":          {15*time.Minute - time.Second, 24 * time.Hour, false, 1}, // clocks differ
		"too short for one":        {16 * time.Minute, 29 * time.Minute, false, 0},
		"due":                      {25 * time.Hour, 24 * time.Hour, false, 0},
		"where timers hop instead": {time.Hour, 24 * time.Hour, true, 0},
	} {
		hub := scheduling()
		if c.hops {
			hub.TimerMode = TimersRequeue
		}
		p, _, s := holder(t, hub)
		created := noon.Add(-c.age)
		p.timers.DeleteSchedules(t.Context(), "01ARZ3", []history.OpenItem{
			{ID: 7, ScheduledAt: created, FireAt: created.Add(c.length)},
		})
		if len(s.deleted) != c.deleted {
			t.Errorf("%s: deleted %v, want %d", name, s.deleted, c.deleted)
		}
	}
}

// A missing schedule counts as deleted. A schedule that cannot be deleted is logged and does not fail the turn.
func TestDeleteSchedules_goneOrFailing_isNotAnError(t *testing.T) {
	t.Parallel()
	refused := &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	throttled := &types.ThrottlingException{Message: aws.String("slow down")}
	for name, c := range map[string]struct {
		response func(n int) error
		calls    int
		reported bool
	}{
		"there":     {nil, 1, false},
		"gone":      {func(int) error { return &types.ResourceNotFoundException{} }, 1, false},
		"refused":   {func(int) error { return refused }, 1, true},
		"throttled": {func(int) error { return throttled }, awscall.MaxTries, true},
		"throttled once": {func(n int) error {
			if n == 1 {
				return throttled
			}
			return nil
		}, 2, false},
	} {
		var log strings.Builder
		p, _, s := holder(t, scheduling(), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s.deletion = c.response
		timer := timerIn(time.Hour)
		p.timers.DeleteSchedules(t.Context(), timer.ExecutionID, []history.OpenItem{
			{ID: timer.TimerID, ScheduledAt: noon.Add(-time.Hour), FireAt: timer.FireAt},
		})
		if strings.Contains(log.String(), "left=1") != c.reported || len(s.deleted) != c.calls ||
			s.deleted[0] != "perdure-h/"+timers.ScheduleName(&timer) {
			t.Errorf("%s: log %q, deleted %v", name, log.String(), s.deleted)
		}
	}
}

// longTimers returns cancelled timers that have schedules.
func longTimers(n int, created time.Time) []history.OpenItem {
	cancelled := make([]history.OpenItem, n)
	for i := range cancelled {
		cancelled[i] = history.OpenItem{ID: int64(i) + 1, ScheduledAt: created, FireAt: created.Add(24 * time.Hour)}
	}
	return cancelled
}

func TestR15_moreTimersThanATurnMayDelete_restIsLeft(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	p, _, s := holder(t, scheduling(), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	p.timers.DeleteSchedules(t.Context(), "01ARZ3", longTimers(timers.MaxDeletions+300, noon.Add(-time.Hour)))
	if len(s.deleted) != 2000 || !strings.Contains(log.String(), "deleted=2000 left=300") {
		t.Errorf("%d schedules were deleted: %s", len(s.deleted), log.String())
	}
}

// hangingSchedules hangs in each deletion.
type hangingSchedules struct{ *fakeSchedules }

func (hangingSchedules) DeleteSchedule(
	ctx context.Context, _ *scheduler.DeleteScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.DeleteScheduleOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestR15_deletionsHang_turnContinuesInTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ left, want time.Duration }{
		"without a deadline":           {0, 2 * time.Second},
		"long before the deadline":     {time.Minute, 2 * time.Second},
		"shortly before that deadline": {4 * time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := Clients{Table: emptyTable{}, Queues: &sqsfake.Queues{}, Schedules: hangingSchedules{}}
			p, err := New(scheduling(), c, WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if tt.left > 0 {
				limited, stop := context.WithTimeout(ctx, tt.left)
				defer stop()
				ctx = limited
			}
			began := time.Now()
			p.timers.DeleteSchedules(ctx, "01ARZ3", longTimers(7, began.Add(-time.Hour)))
			if took := time.Since(began); took != tt.want {
				t.Errorf("%s: %v, want %v", name, took, tt.want)
			}
		})
	}
}
