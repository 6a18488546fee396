package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/wire"
)

// errAccess is an error that no retry resolves.
var errAccess = &smithy.GenericAPIError{
	Code: "AccessDeniedException", Message: "not allowed", Fault: smithy.FaultClient,
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// wantExact fails the test unless an instance with one timer has ended, and the timer fired within a second after it
// was due.
func (h *hub) wantExact(in provider.Instance, d time.Duration) {
	h.t.Helper()
	var due, fired time.Time
	events := h.events(in)
	for _, e := range events {
		switch e.Kind {
		case history.TimerCreated:
			due = *e.FireAt
		case history.TimerFired:
			fired = e.Time
		}
	}
	if events[len(events)-1].Kind != history.OrchestrationCompleted {
		h.t.Fatalf("got history %v, want an end", events)
	}
	if want := in.CreatedAt.Add(d); due.Sub(want).Abs() > time.Second {
		h.t.Errorf("due at %v, want about %v", due, want)
	}
	if late := fired.Sub(due); late < 0 || late > time.Second {
		h.t.Errorf("a timer of %v was late by %v", d, late)
	}
}

// wantNothingLeft fails the test if a schedule or message remains.
func (h *hub) wantNothingLeft() {
	h.t.Helper()
	if n := h.Cloud.Schedules.Count(); n > 0 {
		h.t.Errorf("got %d schedules, want 0", n)
	}
	for _, url := range []string{"sim://inbox.fifo", "sim://timers", "sim://inbox-dead.fifo", "sim://timers-dead"} {
		if left := h.receive(url); len(left) > 0 {
			h.t.Errorf("got %d messages in %s, want 0; first: %s", len(left), url, left[0].Body)
		}
	}
}

// A timer of a year is as exact as one of a minute, with schedules and with requeued messages.
func TestTimers_long_areExact(t *testing.T) {
	t.Parallel()
	// in 2,880 hops
	for mode, longest := range map[string]time.Duration{
		dynamo.TimersSchedules: 10 * year,
		dynamo.TimersRequeue:   30 * day,
	} {
		for _, d := range []time.Duration{
			15*time.Minute + time.Second, time.Hour, day + 900*time.Millisecond,
			longest,
		} {
			t.Run(fmt.Sprintf("%s/%v", mode, d), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Timers: mode}, func(_ context.Context, h *hub) {
					in := h.start("timer", d)
					h.serveFor(d + time.Minute)
					h.wantExact(in, d)
					h.wantNothingLeft()
				})
			})
		}
	}
}

// A client that starts with a delay sends a message, because its role has no access to schedules. The renewer creates
// the schedule.
func TestTimers_longDelayedStart_getsOneSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		at := time.Now().Add(50 * time.Hour)
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: "s", StartAt: at,
		})
		if err != nil || h.Cloud.Schedules.Count() != 0 {
			t.Fatalf("got %d schedules by the client, error %v, want 0", h.Cloud.Schedules.Count(), err)
		}
		h.serveFor(time.Hour)
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Errorf("got %d schedules, want 1", n)
		}
		h.serveFor(50 * time.Hour)
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if late := end.Time.Sub(at); err != nil || late < 0 || late > time.Second {
			t.Errorf("started %v late, error %v", late, err)
		}
		h.wantNothingLeft()
	})
}

// A timer of up to 15 minutes costs one message, and two for its last seconds. Each longer timer costs one schedule.
func TestTimers_long_costOneSchedule(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]struct{ schedules, sends int64 }{
		15 * time.Minute:             {0, 2}, // delayed, fired
		15*time.Minute + time.Second: {0, 2}, // the function waits for the rest
		29 * time.Minute:             {0, 3}, // delayed twice, fired
		31 * time.Minute:             {1, 3}, // delayed, returned by a schedule and delayed, fired
		10 * year:                    {1, 3},
	} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.start("timer", d)
				h.Cloud.ResetCounts()
				h.serveFor(d + time.Minute)
				got := h.Cloud.Counts()
				if n := got["Scheduler.CreateSchedule"]; n != want.schedules || got["Scheduler.DeleteSchedule"] != 0 {
					t.Errorf("got %d schedules, want %d", n, want.schedules)
				}
				if n := got["SQS.SendMessageBatch"]; n != want.sends {
					t.Errorf("got %d sends, want %d", n, want.sends)
				}
			})
		})
	}
}

// EventBridge Scheduler fires up to a minute late, and at least once. The lead of the schedule absorbs the delay, and
// the turn drops the repetition.
func TestTimers_schedulesLateOrRepeated_fireOnTimeOnce(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]simaws.ScheduleDisorder{
		"on time":              {},
		"a minute late":        {LateFrom: time.Minute, LateTo: time.Minute},
		"as late as can be":    {LateFrom: 2*time.Minute - time.Second, LateTo: 2*time.Minute - time.Second},
		"twice":                {LateTo: time.Minute, Twice: 1},
		"late, twice, lingers": {LateFrom: time.Minute, LateTo: time.Minute, Twice: 1, Linger: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.Cloud.Schedules.Disorder(d)
				in := h.start("timer", 3*time.Hour)
				h.serveFor(6 * time.Hour)
				h.wantExact(in, 3*time.Hour) // and history settles the timer once
				h.wantNothingLeft()
			})
		})
	}
}

// The precision of EventBridge Scheduler is a minute
// (https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html). Such a delay never makes a timer
// late, because its schedule is two minutes early.
func TestTimers_scheduleIsLateByUpToAMinute_fireOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		for seconds := range 61 {
			by := time.Duration(seconds) * time.Second
			h.Cloud.Schedules.Disorder(simaws.ScheduleDisorder{LateFrom: by, LateTo: by})
			in := must(h.Provider.StartOrchestration(h.t.Context(), provider.Start{
				InstanceID: fmt.Sprint("late by ", by), Name: "timer", Input: encoded(t, time.Hour),
				StartID: fmt.Sprint(by),
			}))
			h.serveFor(2 * time.Hour)
			h.wantExact(in, time.Hour)
		}
	})
}

// A schedule that fires long after its timer is due still fires the timer.
func TestTimers_scheduleVeryLate_firesLate(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.Cloud.Schedules.Disorder(simaws.ScheduleDisorder{LateFrom: time.Hour, LateTo: time.Hour})
		in := h.start("timer", 3*time.Hour)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted ||
			end.Time.Sub(in.CreatedAt).Round(time.Minute) != 3*time.Hour+58*time.Minute {
			t.Errorf("ended with %s at %v", end.String(), end.Time.Sub(in.CreatedAt))
		}
	})
}

// The renewer crashes before or after it creates a schedule, and SQS redelivers the timer's record. The next delivery
// finds or creates the schedule.
func TestR1_crashAroundCreateSchedule_losesNothing(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crash, crashed := crashOnce(after, func(c simaws.Call) bool { return c.Operation == "CreateSchedule" })
			inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, h *hub) {
				in := h.start("timer", 3*time.Hour)
				h.serveFor(4 * time.Hour)
				if n := h.Cloud.Counts()["Scheduler.CreateSchedule"]; !crashed.Load() || n != 2 {
					t.Errorf("crashed=%v: got %d calls, want 2", crashed.Load(), n)
				}
				h.wantExact(in, 3*time.Hour)
				h.wantNothingLeft()
			})
		})
	}
}

// The process crashes at every call of a long timer, in both modes.
func TestTimers_crashAtAnyCall_fireOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{dynamo.TimersSchedules, dynamo.TimersRequeue} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", mode, after), func(t *testing.T) {
				t.Parallel()
				s := scenario{name: "timer", input: time.Hour, instances: 1}
				for n := int64(1); crashAt(t, s, n, after, simhub.Options{Environments: 2, Timers: mode}); n++ {
				}
			})
		}
	}
}

// EventBridge Scheduler throttles or rejects requests for some time. The timer's record stays in its queue, and the
// timer is not lost.
func TestTimers_schedulerRejectsRequests_areNotLost(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"throttled": simaws.SchedulesThrottled(), "refused": errAccess} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var until time.Time
			var refused atomic.Int64
			o := simhub.Options{Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "CreateSchedule" && time.Now().Before(until) {
					refused.Add(1)
					return refusal
				}
				return next()
			}}
			inBubble(t, o, func(_ context.Context, h *hub) {
				until = time.Now().Add(time.Hour)
				in := h.start("timer", 3*time.Hour)
				h.serveFor(4 * time.Hour)
				if refused.Load() == 0 {
					t.Error("got no rejected requests")
				}
				h.wantExact(in, 3*time.Hour)
				h.wantNothingLeft()
			})
		})
	}
}

// Timers whose schedules fail or are slow must not delay other timers of their batch.
func TestTimers_scheduleFails_otherTimersOfBatchAreOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		now := time.Now()
		var timers []provider.Timer
		for n, d := range []time.Duration{time.Second, time.Minute, time.Hour, 2 * time.Hour} {
			timers = append(timers, provider.Timer{
				V: provider.WireVersion, InstanceID: "i-1", ExecutionID: fmt.Sprint("x", n), Segment: 1, TimerID: 3,
				FireAt: now.Add(d),
			})
		}
		var fired time.Time
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch in := c.Input.(type) {
			case *scheduler.CreateScheduleInput:
				time.Sleep(5 * time.Second)
				at := timers[2].FireAt.Add(-2 * time.Minute).UTC()
				if *in.ScheduleExpression == at.Format("at(2006-01-02T15:04:05)") {
					return errAccess
				}
			case *sqs.SendMessageBatchInput:
				if *in.QueueUrl == "sim://inbox.fifo" {
					fired = time.Now()
				}
			}
			return next()
		})
		for _, timer := range timers { // as sent by a turn, after their message delays
			body, url := string(encoded(t, timer)), "sim://timers"
			if _, err := h.Cloud.Queues.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl:    &url,
				MessageBody: &body,
			}); err != nil {
				t.Fatal(err)
			}
		}
		records := h.receive("sim://timers")
		failed := h.Renewer.HandleRecords(ctx, records)
		var stays []string
		for _, r := range records {
			if timer, err := wire.DecodeTimer(r.Body); err == nil && timer.ExecutionID == "x2" {
				stays = append(stays, r.ID)
			}
		}
		if len(records) != 4 || !slices.Equal(failed, stays) {
			t.Errorf("got %d records, failed records %v, want %v", len(records), failed, stays)
		}
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Errorf("got %d schedules, want that of two hours", n)
		}
		if late := fired.Sub(timers[0].FireAt); late < 0 || late > time.Second {
			t.Errorf("first timer is %v late", late)
		}
	})
}
