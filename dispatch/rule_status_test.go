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

// A status that nothing depends on is written at best: a turn whose status could not be written is done, and a refresh writes it later.

// statusesThrottled refuses every update of an instance for so long, and counts the refusals.
type statusesThrottled struct {
	until   time.Time
	refused atomic.Int64
	asked   atomic.Int64 // refreshes
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
				s.asked.Add(1)
			}
		}
	}
	return next()
}

// runs counts how often each activity ran.
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

// statusRegistry has an orchestration that calls activities, shows what it does, and waits; one that just calls them; and one that
// goes on in another execution.
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
		if err != nil { // it is cancelled, and has to clean up
			safe := perdure.WithoutCancel(ctx)
			_, _ = perdure.WaitForExternalEvent[int](safe, "add").Await(safe)
		}
		return v, err
	})
	perdure.AddOrchestration(g, "counts-all", func(ctx *perdure.OrchestrationContext, n int) (int, error) { return n, call(ctx, n) })
	perdure.AddOrchestration(g, "goes-on", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		}
		ctx.SetCustomStatus("first life")
		if _, err := perdure.CreateTimer(ctx, time.Minute).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, 1)
	})
	return g
}

func (h *hub) wantShown(id string, status provider.RuntimeStatus, custom string) {
	h.t.Helper()
	in, err := h.Provider.ReadInstance(h.t.Context(), id)
	if err != nil || in.Status != status || string(in.CustomStatus) != custom {
		h.t.Errorf("%s is shown as %s, %s, %v; want %s, %s", id, in.Status, in.CustomStatus, err, status, custom)
	}
}

// For an hour no instance can be updated. Work goes on as ever, ends are told again until they are written, and a quarter of an hour
// after that every status is what history says.
func TestAnHourOfThrottledStatusesRunsNoActivityTwice(t *testing.T) {
	t.Parallel()
	ran, throttled := &runs{of: map[string]int{}}, &statusesThrottled{}
	inBubble(t, simhub.Options{Registry: statusRegistry(ran), Intercept: throttled.intercept}, func(ctx context.Context, h *hub) {
		throttled.until = time.Now().Add(time.Hour)
		h.startAs("waits", "shows", 40)
		h.startAs("is-cancelled", "shows", 30)
		h.startAs("ends", "counts-all", 30)
		h.startAs("goes-on", "goes-on", 0)
		h.serveFor(10 * time.Minute)
		h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: "is-cancelled", Reason: "requested"})
		for range 7 {
			h.serveFor(10 * time.Minute)
			if _, err := h.Timekeeper.Sweep(ctx); err != nil && time.Now().After(throttled.until) {
				t.Error(err) // until then it cannot note what it has looked at either
			}
		}
		activities, all := ran.all()
		t.Logf("%d activities ran %d times; %d updates were refused, %d refreshes asked for", activities, all, throttled.refused.Load(), throttled.asked.Load())
		if activities != 100 || all != 100 {
			t.Errorf("%d activities ran %d times", activities, all)
		}
		h.wantShown("waits", provider.StatusRunning, `"waiting"`)
		h.wantShown("is-cancelled", provider.StatusCancelling, `"waiting"`)
		h.wantShown("ends", provider.StatusCompleted, "")
		h.wantShown("goes-on", provider.StatusRunning, `"first life"`)
		for _, id := range []string{"waits", "is-cancelled", "goes-on"} {
			h.send(provider.Message{Kind: provider.MessageEventRaised, InstanceID: id, Name: "add", EventID: "e", Data: history.Payload("1")})
		}
		h.serveFor(time.Hour)
		h.checkRest() // no refresh goes on for ever
	})
}

// Without the watch, the refreshes alone bring every status, and there are few of them however long it takes.
func TestARefreshThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"a moment": 10 * time.Second, "two minutes": 2 * time.Minute, "a day": day} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throttled := &statusesThrottled{}
			inBubble(t, simhub.Options{Registry: statusRegistry(&runs{of: map[string]int{}}), Intercept: throttled.intercept}, func(_ context.Context, h *hub) {
				throttled.until = time.Now().Add(outage)
				h.startAs("i-1", "shows", 1)
				h.serveFor(outage + 16*time.Minute)
				h.wantShown("i-1", provider.StatusRunning, `"waiting"`)
				if asked, most := throttled.asked.Load(), int64(8+outage/(15*time.Minute)); asked > most {
					t.Errorf("%d refreshes in %v", asked, outage)
				}
			})
		})
	}
}

// A table that can be neither read nor written holds up no message behind a refresh.
func TestARefreshThatCannotReadHoldsNothingUp(t *testing.T) {
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
			provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: "1", Data: history.Payload("1")},
			provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, TimerID: 2, Refresh: 3},
			provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: "2", Data: history.Payload("1")},
		)
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		h.interfere(nil)
		if events := h.events(in); events[len(events)-1].EventID != "2" {
			t.Errorf("the event behind it: %v", events)
		}
		time.Sleep(5 * time.Minute)
		timers, _ := h.Provider.DecodeTimers(h.receive("sim://timers"))
		if len(timers) != 1 || timers[0].Refresh != 4 || timers[0].TimerID != 2 || timers[0].ExecutionID != in.ExecutionID || timers[0].Segment != 1 {
			t.Errorf("timers %+v", timers)
		}
	})
}

// The release before knows no refresh: its renewer fires a timer of that id, which no code waits for, not even that of a delayed start.
func TestARefreshThatAnOlderRenewerFiresChangesNothing(t *testing.T) {
	t.Parallel()
	throttled := &statusesThrottled{}
	inBubble(t, simhub.Options{Intercept: throttled.intercept}, func(ctx context.Context, h *hub) {
		throttled.until = time.Now().Add(20 * time.Minute)
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "i-1", Name: "timer", Input: encoded(t, time.Minute), StartID: "s", StartAt: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		h.raise(in, "early", 1) // kept until its time; the status cannot be written
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
					Kind: provider.MessageTimerFired, InstanceID: timer.InstanceID, ExecutionID: timer.ExecutionID, Segment: timer.Segment, TimerID: timer.TimerID, FireAt: &timer.FireAt,
				})
			}
		}
		if len(before) < 3 || len(fired) != 1 {
			t.Fatalf("%d events, fired %v", len(before), fired)
		}
		h.send(fired[0])
		h.turn(0)
		if after := h.events(in); len(after) != len(before) {
			t.Errorf("history went on: %v", after[len(before):])
		}
	})
}
