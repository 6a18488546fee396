package simaws_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

// agenda is a standard queue that schedules send to. Schedules are exactly on time unless a test sets another disorder.
type agenda struct {
	*desk

	dead string
}

func newAgenda(tb testing.TB) *agenda {
	tb.Helper()

	d := newDesk(tb, "work", simaws.QueueConfig{})
	d.cloud.Schedules.Disorder(simaws.ScheduleDisorder{})

	return &agenda{d, d.cloud.Queues.Create("dead", simaws.QueueConfig{})}
}

// input returns the input of a schedule for a time. The message of the schedule is its name.
func (a *agenda) input(name string, at time.Time) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: aws.String(at.Format("at(2006-01-02T15:04:05)")),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: aws.String(a.cloud.Queues.ARN(a.url)), RoleArn: aws.String("arn:aws:iam::000000000000:role/r"),
			Input: &name,
		},
	}
}

func (a *agenda) create(name string, after time.Duration) {
	a.tb.Helper()

	if _, err := a.cloud.Schedules.CreateSchedule(a.tb.Context(), a.input(name, a.now.Add(after))); err != nil {
		a.tb.Fatal(err)
	}
}

func (a *agenda) get(name string) error {
	_, err := a.cloud.Schedules.GetSchedule(a.tb.Context(), &scheduler.GetScheduleInput{Name: &name})

	return err
}

func TestSchedule_isDue_sendsOnceAndIsDeleted(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	a.create("b", 2*time.Hour)
	a.create("a", time.Hour)
	a.add(time.Hour - time.Second)
	a.want()
	wantCode(t, a.get("a"), "")

	a.add(time.Second)

	m := a.want("a")[0]
	if sent := m.Attributes["SentTimestamp"]; sent != "1735790645000" { // when the schedule fired
		t.Errorf("sent at %s", sent)
	}

	wantCode(t, a.remove(m), "")
	wantCode(t, a.get("a"), "ResourceNotFoundException")
	a.add(time.Hour)
	a.want("b")

	if n := a.cloud.Schedules.Count(); n != 0 {
		t.Errorf("%d schedules are left", n)
	}
}

// A name is in use until its schedule is deleted.
func TestCreateSchedule_nameInUse_isAConflict(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	a.cloud.Schedules.Disorder(simaws.ScheduleDisorder{Linger: 10 * time.Second})
	a.create("a", time.Minute)

	_, err := a.cloud.Schedules.CreateSchedule(t.Context(), a.input("a", a.now.Add(time.Hour)))
	wantCode(t, err, "ConflictException")

	if _, conflict := errors.AsType[*types.ConflictException](err); !conflict {
		t.Errorf("error is not of the SDK's type: %v", err)
	}

	a.add(time.Minute + 9*time.Second)
	a.want("a")

	_, err = a.cloud.Schedules.CreateSchedule(t.Context(), a.input("a", a.now.Add(time.Hour)))
	wantCode(t, err, "ConflictException")
	a.add(time.Second)
	a.create("a", time.Hour)

	if n := a.cloud.Schedules.Count(); n != 1 {
		t.Errorf("%d schedules", n)
	}
}

func TestSchedule_isDeleted_sendsNothing(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	a.create("a", time.Minute)
	a.create("b", time.Minute)

	in := &scheduler.DeleteScheduleInput{Name: aws.String("a")}
	_, err := a.cloud.Schedules.DeleteSchedule(t.Context(), in)
	wantCode(t, err, "")

	_, err = a.cloud.Schedules.DeleteSchedule(t.Context(), in)
	wantCode(t, err, "ResourceNotFoundException")
	a.add(time.Hour)
	a.want("b")
}

// A schedule fires within a minute of its time. The delay depends only on the name and the disorder.
func TestSchedule_lateByUpToAMinute_orderDependsOnTheSeed(t *testing.T) {
	t.Parallel()

	var first []string

	for range 2 {
		a := newAgenda(t)
		a.cloud.Schedules.Disorder(simaws.ScheduleDisorder{Seed: 7, LateTo: time.Minute})

		for name := range strings.SplitSeq("abcdefghijklmnopqrst", "") {
			a.create(name, time.Hour)
		}

		a.add(time.Hour)

		var order []string

		for range 60 {
			a.add(time.Second)

			for _, m := range a.receive(10) {
				order = append(order, *m.Body)
				wantCode(t, a.remove(m), "")
			}
		}

		if len(order) != 20 {
			t.Fatalf("%d fired within a minute", len(order))
		}

		if first != nil && strings.Join(first, "") != strings.Join(order, "") {
			t.Errorf("order %q in the first run, %q in the second run", first, order)
		}

		if first = order; strings.Join(order, "") == "abcdefghijklmnopqrst" {
			t.Errorf("all schedules have the same delay")
		}
	}
}

func TestSchedule_lateAndTwice_sendsTwice(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	a.cloud.Schedules.Disorder(simaws.ScheduleDisorder{LateFrom: time.Minute, LateTo: time.Minute, Twice: 1})
	a.create("a", time.Hour)
	a.add(time.Hour + time.Minute - 1)
	a.want()
	a.add(1)
	wantCode(t, a.remove(a.want("a")[0]), "")
	a.add(time.Minute)
	wantCode(t, a.remove(a.want("a")[0]), "")
	a.add(time.Hour)
	a.want()
}

func TestSchedule_targetDoesNotExist_sendsToDeadLetterQueue(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	in := a.input("a", a.now.Add(time.Hour))
	in.Target.Arn = aws.String("arn:aws:sqs:us-east-1:000000000000:elsewhere")
	in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String(a.cloud.Queues.ARN(a.dead))}
	_, err := a.cloud.Schedules.CreateSchedule(t.Context(), in)
	wantCode(t, err, "")
	a.add(time.Hour)
	a.want()

	a.url = a.dead
	a.want("a")
}

func TestCreateSchedule_invalidInput_isRejected(t *testing.T) {
	t.Parallel()

	a := newAgenda(t)
	for name, c := range map[string]struct {
		damage func(in *scheduler.CreateScheduleInput)
		code   string
	}{
		"nothing":       {func(*scheduler.CreateScheduleInput) {}, ""},
		"64 characters": {func(in *scheduler.CreateScheduleInput) { *in.Name = strings.Repeat("-_.aZ09x", 8) }, ""},
		"empty name":    {func(in *scheduler.CreateScheduleInput) { *in.Name = "" }, "ValidationException"},
		"65 characters": {func(in *scheduler.CreateScheduleInput) {
			*in.Name = strings.Repeat("x", 65)
		}, "ValidationException"},
		"letters": {func(in *scheduler.CreateScheduleInput) { *in.Name = "a#b" }, "ValidationException"},
		"no such group": {func(in *scheduler.CreateScheduleInput) {
			in.GroupName = aws.String("g")
		}, "ResourceNotFoundException"},
		"name of a group": {func(in *scheduler.CreateScheduleInput) {
			in.GroupName = aws.String("g/g")
		}, "ValidationException"},
		"no window": {func(in *scheduler.CreateScheduleInput) {
			in.FlexibleTimeWindow = nil
		}, "ValidationException"},
		"no target": {func(in *scheduler.CreateScheduleInput) { in.Target = nil }, "ValidationException"},
		"no role": {func(in *scheduler.CreateScheduleInput) {
			in.Target.RoleArn = nil
		}, "ValidationException"},
		"URL as target": {func(in *scheduler.CreateScheduleInput) { in.Target.Arn = &a.url }, "ValidationException"},
		"no input":      {func(in *scheduler.CreateScheduleInput) { in.Target.Input = nil }, "ValidationException"},
		"past": {func(in *scheduler.CreateScheduleInput) {
			*in.ScheduleExpression = "at(2025-01-02T03:04:04)"
		}, "ValidationException"},
		"now": {func(in *scheduler.CreateScheduleInput) {
			*in.ScheduleExpression = "at(2025-01-02T03:04:05)"
		}, ""},
		"zone in the time": {func(in *scheduler.CreateScheduleInput) {
			*in.ScheduleExpression = "at(2026-01-02T03:04:05Z)"
		}, "ValidationException"},
		"fractions": {func(in *scheduler.CreateScheduleInput) {
			*in.ScheduleExpression = "at(2026-01-02T03:04)"
		}, "ValidationException"},
		"too many retries": {func(in *scheduler.CreateScheduleInput) {
			in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(186)}
		}, "ValidationException"},
		"too short an age": {func(in *scheduler.CreateScheduleInput) {
			in.Target.RetryPolicy = &types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(59)}
		}, "ValidationException"},
		"FIFO dead letters": {func(in *scheduler.CreateScheduleInput) {
			in.Target.DeadLetterConfig = &types.DeadLetterConfig{
				Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:dead.fifo"),
			}
		}, "ValidationException"},
		"not simulated": {func(in *scheduler.CreateScheduleInput) {
			*in.ScheduleExpression = "rate(1 day)"
		}, "?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := a.input("s-"+strings.ReplaceAll(name, " ", "-"), a.now.Add(time.Hour))
			c.damage(in)

			_, err := a.cloud.Schedules.CreateSchedule(t.Context(), in)
			wantCode(t, err, c.code)
		})
	}
}

// Calls of Scheduler are counted and intercepted like calls of the other services.
func TestCreateSchedule_call_isInterceptedAndCounted(t *testing.T) {
	t.Parallel()

	clock, seen := newClock(), []string{}
	c := simaws.New(simaws.WithClock(clock.time), simaws.WithInterceptor(
		func(_ context.Context, c simaws.Call, next func() error) error {
			if seen = append(seen, c.Service+"."+c.Operation); len(seen) == 1 {
				return simaws.SchedulesThrottled()
			}

			return next()
		}))
	a := &agenda{desk: &desk{clock, t, c, c.Queues.Create("work", simaws.QueueConfig{})}}

	_, err := c.Schedules.CreateSchedule(t.Context(), a.input("a", a.now.Add(time.Hour)))
	wantCode(t, err, "ThrottlingException")
	a.create("a", time.Hour)

	if got := c.Counts()["Scheduler.CreateSchedule"]; got != 2 || len(seen) != 2 ||
		seen[1] != "Scheduler.CreateSchedule" {
		t.Errorf("counted %d, seen %q", got, seen)
	}
}

// NextDue and Serve use the time of a schedule, even if the time is centuries away.
func TestNextDue_scheduleExists_returnsItsTime(t *testing.T) {
	t.Parallel()

	for name, after := range map[string]time.Duration{
		"an hour": time.Hour, "ten years": 87660 * time.Hour, "290 years": 290 * 8766 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := simaws.New()
				c.Schedules.Disorder(simaws.ScheduleDisorder{})

				url := c.Queues.Create("work", simaws.QueueConfig{})
				a := &agenda{desk: &desk{&clock{time.Now()}, t, c, url}}

				var fired []time.Time

				c.Map(url, simaws.Mapping{Invoke: func(context.Context, []sqstypes.Message) ([]string, error) {
					fired = append(fired, time.Now())

					return nil, nil
				}})

				ctx, stop := context.WithCancel(t.Context())
				go c.Serve(ctx)

				due := time.Now().Add(after)
				a.create("a", after)

				last := time.Unix(0, 1<<63-1) // the latest time in nanoseconds
				if at, ok := c.NextDue(); !ok || !at.Equal(due) && due.Before(last) {
					t.Errorf("next due %v, %v, want %v", at, ok, due)
				}

				if due.Before(last) {
					time.Sleep(after + time.Second)
					synctest.Wait()

					if len(fired) != 1 || !fired[0].Equal(due) {
						t.Errorf("fired %v, want %v", fired, due)
					}
				}

				stop()
				synctest.Wait()
			})
		})
	}
}
