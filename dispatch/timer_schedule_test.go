package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A long timer is in its queue for 15 minutes before it gets a schedule. The turn that cancels the timer may commit:
//   - before the schedule is created: the check after the creation detects the cancel
//   - between the creation and the check: the check detects the cancel, and the turn also deletes the schedule
//   - after the check: the turn deletes the schedule
//   - while the renewer crashes between the creation and the check: SQS redelivers the timer

// wantNoTimer fails the test if a schedule remains, or a timer fires within two days.
func (h *hub) wantNoTimer() {
	h.t.Helper()
	if n := h.Cloud.Schedules.Count(); n > 0 {
		h.t.Errorf("got %d schedules, want 0", n)
	}
	h.Cloud.ResetCounts()
	h.serveFor(2 * day)
	if got := h.Cloud.Counts(); got["SQS.SendMessageBatch"] > 0 {
		h.t.Errorf("the cancelled timer fired: %v", got)
	}
}

func TestR15_timerCancelledInQueue_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *hub, in provider.Instance){
		"cancelled": func(h *hub, in provider.Instance) { h.raise(in, "e", 1) },
		"execution ended": func(h *hub, in provider.Instance) {
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("waits-a-day", 0)
				h.serveFor(time.Minute)
				end(h, in)
				h.wantScheduleDeleted()
				h.endsAfter(in, 0)
				h.checkIdle()
			})
		})
	}
}

// A delayed start has a timer that no event creates or cancels. The timer is obsolete after the end of the instance.
func TestR15_delayedStartIsTerminated_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: "s",
			StartAt: time.Now().Add(50 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		h.wantScheduleDeleted()
		h.checkIdle()
	})
}

// The stubs of a deleted history show that the timer is obsolete.
func TestR15_instanceDeleted_timerLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Minute)
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
			t.Fatal(err)
		}
		h.wantScheduleDeleted()
	})
}

// The events of these 15 minutes may fill several pages of a query.
func TestR15_checkAfterCreation_readsAllPages(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Second)
		for n := range int64(8) {
			m := provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: static(n, 8),
				Data: encoded(t, static(n, 900<<10)),
			}
			h.send(m)
			h.serveFor(time.Minute)
		}
		h.raise(in, "e", 1)
		h.wantScheduleDeleted()
		h.endsAfter(in, 0)
		h.checkIdle()
	})
}

// If an instance has several timers, the check deletes only the schedules of cancelled timers.
func TestR15_otherTimers_keepTheirSchedules(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "two", func(ctx *perdure.OrchestrationContext, _ int) (time.Duration, error) {
		began := ctx.Now()
		lost, kept := perdure.CreateTimer(ctx, 2*time.Hour), perdure.CreateTimer(ctx, time.Hour)
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		lost.Cancel("not needed")
		at, err := kept.Await(ctx)
		return at.Sub(began), err
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("two", 0)
		h.serveFor(time.Minute)
		h.raise(in, "e", 1)
		h.serveFor(20 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Errorf("got %d schedules, want that of the awaited timer", n)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != "3600000000000" {
			t.Errorf("ended with %s, output %s", end.Kind, end.Output)
		}
		h.checkIdle()
	})
}

// Interleaving: the turn commits after the creation of the schedule and before the check.
func TestR15_timerIsCancelledBeforeTheCheck_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.turn(0)
		time.Sleep(15 * time.Minute)
		h.raise(in, "e", 1)
		created := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if c.Operation == "CreateSchedule" {
				created = true
				h.interfere(nil)
				h.turn(0)
			}
			return err
		})
		if failed := h.Renewer.HandleRecords(ctx, h.receive("sim://timers")); len(failed) > 0 || !created {
			t.Errorf("got failed records %v, schedule created: %v", failed, created)
		}
		if n := h.Cloud.Schedules.Count(); n > 0 {
			t.Errorf("got %d schedules, want 0", n)
		}
	})
}

// Interleaving: the cancel is in history, and the renewer crashes between the creation of the schedule and the check,
// before or after its query.
func TestR15_crashBeforeCheck_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the query": false, "after the call": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := (*hub)(nil)
			crash, crashed := crashOnce(after, func(c simaws.Call) bool {
				_, query := c.Input.(*dynamodb.QueryInput)
				return query && h != nil && h.Cloud.Counts()["Scheduler.CreateSchedule"] > 0
			})
			inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, hub *hub) {
				in := hub.start("waits-a-day", 0)
				hub.serveFor(time.Minute)
				hub.raise(in, "e", 1)
				h = hub
				hub.serveFor(20 * time.Minute)
				if !crashed.Load() {
					t.Error("no process has crashed")
				}
				hub.wantNoTimer()
			})
		})
	}
}

// A failed check is repeated with its record. The timer is not lost, and its schedule is deleted.
func TestR15_checkFails_isRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("timer", 3*time.Hour)
		failures := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if q, ok := c.Input.(*dynamodb.QueryInput); ok && text(q.ExpressionAttributeValues, ":last") == "h#~" &&
				text(q.ExpressionAttributeValues, ":sk") != "h#0000000000" && failures < 3 {
				failures++
				return errAccess
			}
			return next()
		})
		h.serveFor(4 * time.Hour)
		if failures != 3 {
			t.Errorf("got %d failed checks, want 3", failures)
		}
		h.wantExact(in, 3*time.Hour)
		h.wantNothingLeft()
	})
}

// wantScheduleDeleted runs the hub until a timer has its schedule, and fails the test unless the schedule is deleted.
func (h *hub) wantScheduleDeleted() {
	h.t.Helper()
	h.serveFor(20 * time.Minute)
	if n := h.Cloud.Counts()["Scheduler.CreateSchedule"]; n != 1 {
		h.t.Errorf("got %d created schedules, want 1: the test shows nothing", n)
	}
	h.wantNoTimer()
}
