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

// A long timer waits a quarter of an hour in its queue before it gets a schedule. Where the turn that cancels it commits
// meanwhile:
//
//	before the creation     the look after the creation finds it
//	creation .. look        the same, and the turn deletes the schedule, too
//	after the look          the turn deletes the schedule
//	and the renewer dies between creation and look: the timer's record comes again

// wantNoTimer fails unless a day passes in which nothing comes of a timer.
func (h *hub) wantNoTimer() {
	h.t.Helper()
	if n := h.Cloud.Schedules.Count(); n > 0 {
		h.t.Errorf("%d schedules are left", n)
	}
	h.Cloud.ResetCounts()
	h.serveFor(2 * day)
	if got := h.Cloud.Counts(); got["SQS.SendMessageBatch"] > 0 {
		h.t.Errorf("the cancelled timer fired: %v", got)
	}
}

func TestR15ATimerThatIsCancelledInItsQueueLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *hub, in provider.Instance){
		"cancelled": func(h *hub, in provider.Instance) { h.raise(in, "e", 1) },
		"its execution is over": func(h *hub, in provider.Instance) {
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
				h.checkRest()
			})
		})
	}
}

// A start with a delay has a timer that no event creates or cancels: it is nobody's once the instance is over.
func TestR15ADelayedStartThatIsTerminatedLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: "s", StartAt: time.Now().Add(50 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		h.wantScheduleDeleted()
		h.checkRest()
	})
}

// What is deleted meanwhile has stubs for a history, which say as much.
func TestR15ATimerOfADeletedInstanceLeavesNoSchedule(t *testing.T) {
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

// What came in the quarter of an hour may fill several pages of a query.
func TestR15TheSecondLookReadsOn(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		h.serveFor(time.Second)
		for n := range int64(8) {
			m := provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: static(n, 8), Data: encoded(t, static(n, 900<<10))}
			h.send(m)
			h.serveFor(time.Minute)
		}
		h.raise(in, "e", 1)
		h.wantScheduleDeleted()
		h.endsAfter(in, 0)
		h.checkRest()
	})
}

// Of several timers the look deletes the schedules of those that are cancelled, and no other.
func TestR15TheOthersKeepTheirSchedules(t *testing.T) {
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
			t.Errorf("%d schedules, want that of the timer which is waited for", n)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != "3600000000000" {
			t.Errorf("ended with %s %s", end.Kind, end.Output)
		}
		h.checkRest()
	})
}

// Interleaving: the turn commits after the schedule is there, and before the look.
func TestR15ACancelBetweenCreationAndLook(t *testing.T) {
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
		if failed := h.Timekeeper.HandleRecords(ctx, h.receive("sim://timers")); len(failed) > 0 || !created {
			t.Errorf("failed %v, created: %v", failed, created)
		}
		if n := h.Cloud.Schedules.Count(); n > 0 {
			t.Errorf("%d schedules are left", n)
		}
	})
}

// Interleaving: the renewer dies between creation and look, at its query or after it; and the cancel is in history before.
func TestR15ACrashBeforeTheSecondLook(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the query": false, "after it": true} {
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
					t.Error("nothing has crashed")
				}
				hub.wantNoTimer()
			})
		})
	}
}

// A look that fails is made again, with the record: the timer is neither lost nor left.
func TestR15ALookThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("timer", 3*time.Hour)
		failures := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if q, ok := c.Input.(*dynamodb.QueryInput); ok && text(q.ExpressionAttributeValues, ":end") == "h#~" && text(q.ExpressionAttributeValues, ":sk") != "h#0000000000" && failures < 3 {
				failures++
				return errAccess
			}
			return next()
		})
		h.serveFor(4 * time.Hour)
		if failures != 3 {
			t.Errorf("%d looks failed", failures)
		}
		h.wantExact(in, 3*time.Hour)
		h.wantNothingLeft()
	})
}

// wantScheduleDeleted serves until a timer has got its schedule, which must be gone then.
func (h *hub) wantScheduleDeleted() {
	h.t.Helper()
	h.serveFor(20 * time.Minute)
	if n := h.Cloud.Counts()["Scheduler.CreateSchedule"]; n != 1 {
		h.t.Errorf("%d schedules were created: the test shows nothing", n)
	}
	h.wantNoTimer()
}
