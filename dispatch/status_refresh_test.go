package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The write of a status on which nothing depends is best effort. A turn succeeds if its status write fails, and a
// refresh writes the status later.

// statusesThrottled throttles all updates of instances until a time, and counts them.
type statusesThrottled struct {
	until     time.Time
	refused   atomic.Int64
	refreshes atomic.Int64 // refreshes
}

func (s *statusesThrottled) intercept(_ context.Context, c simaws.Call, next func() error) error {
	switch in := c.Input.(type) {
	case *dynamodb.UpdateItemInput:
		if text(in.Key, "sk") == "i" && time.Now().Before(s.until) {
			s.refused.Add(1)
			return simaws.Throttled()
		}
	case *sqs.SendMessageBatchInput:
		for _, e := range in.Entries {
			if strings.Contains(*e.MessageBody, `"refresh":`) && strings.HasSuffix(*in.QueueUrl, "timers") {
				s.refreshes.Add(1)
			}
		}
	}
	return next()
}

// runs counts the runs of each activity.
type runs struct {
	mu sync.Mutex
	of map[string]int
}

func (r *runs) count(ctx context.Context, n int) (int, error) {
	info := perdure.ActivityInfoFrom(ctx)
	r.mu.Lock()
	r.of[fmt.Sprint(info.InstanceID, info.ActivityID)]++
	r.mu.Unlock()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return n + 1, nil
}

func (r *runs) all() (activities, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.of {
		all += n
	}
	return len(r.of), all
}

// statusRegistry returns a registry with three orchestrations. The first one calls activities, sets its custom status
// and waits. The second one only calls activities, and the third one continues as new.
func statusRegistry(r *runs) *perdure.Registry {
	g := registry()
	perdure.AddActivity(g, "count", r.count)
	call := func(ctx *perdure.OrchestrationContext, n int) error {
		fs := make([]perdure.Awaitable, n)
		for i := range fs {
			fs[i] = perdure.CallActivityByName[int](ctx, "count", i)
		}
		return perdure.WhenAll(ctx, fs...)
	}
	perdure.AddOrchestration(g, "shows", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		ctx.SetCustomStatus("calling")
		if err := call(ctx, n); err != nil {
			return 0, err
		}
		ctx.SetCustomStatus("waiting")
		v, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil { // cancelled; clean up
			safe := perdure.WithoutCancel(ctx)
			_, _ = perdure.WaitForExternalEvent[int](safe, "add").Await(safe)
		}
		return v, err
	})
	perdure.AddOrchestration(g, "counts-all", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return n, call(ctx, n)
	})
	perdure.AddOrchestration(g, "goes-on", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		}
		ctx.SetCustomStatus("first execution")
		if _, err := perdure.CreateTimer(ctx, time.Minute).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, 1)
	})
	return g
}

func (h *hub) wantStatusShown(id string, status provider.RuntimeStatus, custom string) {
	h.t.Helper()
	in, err := h.Provider.ReadInstance(h.t.Context(), id)
	if err != nil || in.Status != status || string(in.CustomStatus) != custom {
		h.t.Errorf("%s: got status %s, custom status %s, error %v; want %s, %s",
			id, in.Status, in.CustomStatus, err, status, custom)
	}
}

// Instance items cannot be updated for an hour. Instances continue, ends are redelivered until they are written, and a
// quarter of an hour later every status matches history.
func TestStatus_throttledForAnHour_runsNoActivityTwice(t *testing.T) {
	t.Parallel()
	ran, throttled := &runs{of: map[string]int{}}, &statusesThrottled{}
	inBubble(t, simhub.Options{
		Registry: statusRegistry(ran), Intercept: throttled.intercept,
	}, func(ctx context.Context, h *hub) {
		throttled.until = time.Now().Add(time.Hour)
		h.startAs("waits", "shows", 40)
		h.startAs("is-cancelled", "shows", 30)
		h.startAs("ends", "counts-all", 30)
		h.startAs("goes-on", "goes-on", 0)
		h.serveFor(10 * time.Minute)
		h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: "is-cancelled", Reason: "requested"})
		for range 7 {
			h.serveFor(10 * time.Minute)
			if _, err := h.Renewer.Sweep(ctx); err != nil && time.Now().After(throttled.until) {
				t.Error(err) // before that, the sweeper cannot store its progress
			}
		}
		activities, all := ran.all()
		t.Logf("%d activities ran %d times; %d updates were throttled, %d refreshes sent",
			activities, all, throttled.refused.Load(), throttled.refreshes.Load())
		if activities != 100 || all != 100 {
			t.Errorf("got %d activities and %d runs, want 100 each", activities, all)
		}
		h.wantStatusShown("waits", provider.StatusRunning, `"waiting"`)
		h.wantStatusShown("is-cancelled", provider.StatusCancelling, `"waiting"`)
		h.wantStatusShown("ends", provider.StatusCompleted, "")
		h.wantStatusShown("goes-on", provider.StatusRunning, `"first execution"`)
		for _, id := range []string{"waits", "is-cancelled", "goes-on"} {
			h.send(provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: id, Name: "add", EventID: "e",
				Data: history.Payload("1"),
			})
		}
		h.serveFor(time.Hour)
		h.checkIdle() // no refresh remains
	})
}

// Without the sweeper, refreshes alone write every status, and their number is bounded.
func TestStatusRefresh_fails_isRetried(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{
		"a moment": 10 * time.Second, "two minutes": 2 * time.Minute,
		"a day": day,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throttled := &statusesThrottled{}
			inBubble(t, simhub.Options{
				Registry: statusRegistry(&runs{of: map[string]int{}}), Intercept: throttled.intercept,
			}, func(_ context.Context, h *hub) {
				throttled.until = time.Now().Add(outage)
				h.startAs("i-1", "shows", 1)
				h.serveFor(outage + 16*time.Minute)
				h.wantStatusShown("i-1", provider.StatusRunning, `"waiting"`)
				if refreshes, most := throttled.refreshes.Load(), int64(8+outage/(15*time.Minute)); refreshes > most {
					t.Errorf("got %d refreshes in %v", refreshes, outage)
				}
			})
		})
	}
}

// Failing reads of the table during a refresh do not delay later messages.
func TestStatusRefresh_readFails_laterMessagesAreProcessed(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: statusRegistry(&runs{of: map[string]int{}})}, func(_ context.Context, h *hub) {
		in := h.startAs("i-1", "shows", 1)
		h.turn(0)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "Query" {
				return simaws.Throttled()
			}
			return next()
		})
		h.send(
			provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: "1",
				Data: history.Payload("1"),
			},
			provider.Message{
				Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
				TimerID: 2, Refresh: 3,
			},
			provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: "2",
				Data: history.Payload("1"),
			},
		)
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got failed records %v", failed)
		}
		h.interfere(nil)
		if events := h.events(in); events[len(events)-1].EventID != "2" {
			t.Errorf("event after the refresh is missing: %v", events)
		}
		time.Sleep(5 * time.Minute)
		timers, _ := h.Provider.DecodeTimers(h.receive("sim://timers"))
		if len(timers) != 1 || timers[0].Refresh != 4 || timers[0].TimerID != 2 ||
			timers[0].ExecutionID != in.ExecutionID || timers[0].Segment != 1 {
			t.Errorf("got timers %+v, want the refresh again", timers)
		}
	})
}

// An earlier release ignores refreshes. Its renewer fires a timer with that ID, for which no code and no delayed start
// waits.
func TestStatusRefresh_firedByOlderRenewer_changesNothing(t *testing.T) {
	t.Parallel()
	throttled := &statusesThrottled{}
	inBubble(t, simhub.Options{Intercept: throttled.intercept}, func(ctx context.Context, h *hub) {
		throttled.until = time.Now().Add(20 * time.Minute)
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "timer", Input: encoded(t, time.Minute), StartID: "s",
			StartAt: time.Now().Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.raise(in, "early", 1) // parked until the start time; the status cannot be written
		h.turn(0)
		before := h.events(in)
		time.Sleep(10 * time.Minute)
		var fired []provider.Message
		for _, r := range h.receive("sim://timers") {
			var timer provider.Timer
			if err := json.Unmarshal([]byte(r.Body), &timer); err != nil {
				t.Fatal(err)
			}
			if timer.Refresh > 0 {
				fired = append(fired, provider.Message{
					Kind: provider.MessageTimerFired, InstanceID: timer.InstanceID, ExecutionID: timer.ExecutionID,
					Segment: timer.Segment, TimerID: timer.TimerID, FireAt: &timer.FireAt,
				})
			}
		}
		if len(before) < 3 || len(fired) != 1 {
			t.Fatalf("got %d events, fired timers %v", len(before), fired)
		}
		h.send(fired[0])
		h.turn(0)
		if after := h.events(in); len(after) != len(before) {
			t.Errorf("the timer added events: %v", after[len(before):])
		}
	})
}
