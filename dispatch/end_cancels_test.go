package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// openTasksRegistry returns an orchestration with an open activity, timer and child. When it receives the event "add",
// it schedules more than a commit can hold.
func openTasksRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fetch", func(context.Context, string) (string, error) { return "", nil })
	perdure.AddOrchestration(r, "child", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		perdure.CallActivityByName[string](ctx, "fetch", "little")
		perdure.CreateTimer(ctx, time.Hour)
		perdure.CallSubOrchestrationByName[int](ctx, "child", 0, perdure.WithInstanceID("the child"))
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		for i := range n {
			perdure.CallActivityByName[string](ctx, "fetch", static(int64(i), 170<<10))
		}
		if err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	return r
}

// wantOpenTasksCancelled fails the test unless the end event follows the cancellations of open tasks, and workers and
// the child receive them.
func (h *hub) wantOpenTasksCancelled(in provider.Instance, reason string, end history.Kind) {
	h.t.Helper()
	events := h.events(in)
	var got []history.Event
	for _, e := range events[len(events)-4:] {
		got = append(got, history.Event{
			Kind: e.Kind, SourceEventID: e.SourceEventID, InstanceID: e.InstanceID, Reason: e.Reason,
		})
	}
	want := []history.Event{
		{Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: reason},
		{Kind: history.TimerCancelled, SourceEventID: 4, Reason: reason},
		{Kind: history.SubOrchestrationCancelRequested, SourceEventID: 5, InstanceID: "the child", Reason: reason},
		{Kind: end},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("last events (-want +got):\n%s", diff)
	}
	cancels, _, err := h.Provider.ReadCancels(h.t.Context(), in.ExecutionID, 0)
	if c := cancels.Of(3); err != nil || !c.Requested || c.Reason != reason {
		h.t.Errorf("got cancel record %+v, %v, want reason %s", c, err, reason)
	}
	h.serveFor(time.Minute)
	child, err := h.Provider.ReadInstance(h.t.Context(), "the child")
	if err != nil || child.Status != provider.StatusCancelled {
		h.t.Errorf("the child is %s, %v, want cancelled", child.Status, err)
	}
}

// A blocked instance is terminated without its code. Its open tasks are cancelled.
func TestTerminate_blockedInstance_cancelsOpenTasks(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: openTasksRegistry()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0) // of the child
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		if failed := h.passRecords(h.orchestrator(versions("1"), "broken")); len(failed) > 0 {
			t.Fatal("the termination failed without the code of the instance")
		}
		h.wantOpenTasksCancelled(in, string(perdure.ReasonOrchestrationTerminated), history.OrchestrationTerminated)
	})
}

// An instance fails because of nondeterminism (FailOnNondeterminism). Its open tasks are cancelled.
func TestFailOnNondeterminism_instanceFails_cancelsOpenTasks(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: openTasksRegistry()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0)
		h.raise(in, "", 1)
		strict := h.orchestrator(sleeper(2, "plus", perdure.FailOnNondeterminism()), "strict")
		for range 3 {
			h.passRecords(strict)
			time.Sleep(10 * time.Minute)
		}
		h.wantOpenTasksCancelled(in, string(perdure.ReasonOrchestrationFailed), history.OrchestrationFailed)
	})
}

// The decisions of a turn exceed a commit, alone or with a wake after the trigger. The orchestration fails, and its
// open tasks are cancelled.
func TestR2_decisionsExceedACommit_openTasksAreCancelled(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string][]provider.Message{
		"alone": nil, "with a wake": {{Kind: provider.MessageWake}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: openTasksRegistry()}, func(_ context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.turn(0)
				h.turn(0)
				h.raise(in, "", 30) // 5 MB
				for _, m := range behind {
					m.InstanceID, m.ExecutionID = in.InstanceID, in.ExecutionID
					h.send(m)
				}
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("got failed records %v, want none", failed)
				}
				h.wantOpenTasksCancelled(in, string(perdure.ReasonOrchestrationFailed), history.OrchestrationFailed)
			})
		})
	}
}

// An instance with an unreadable history is terminated, before or after it is blocked. The termination does not read
// the history, and survives a crash of its function.
func TestTerminate_historyIsUnreadable_succeeds(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"at once": 0, "when blocked": 2 * time.Hour} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dies=%v", name, dies), func(t *testing.T) {
				t.Parallel()
				intercept, crashed := crashOnce(true, func(c simaws.Call) bool {
					in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
					return dies && ok && in.TransactItems[0].Put != nil &&
						text(in.TransactItems[0].Put.Item, "sk") == "h#0000000002"
				})
				o := simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1, Intercept: intercept}
				inBubble(t, o, func(_ context.Context, h *hub) {
					in := h.start("sleeper", 0)
					h.turn(0)
					h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
					h.raise(in, "e", 5)
					h.serveFor(after)
					h.send(provider.Message{
						Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "give up",
					})
					h.serveFor(time.Hour)
					if now := h.read(in); now.Status != provider.StatusTerminated || now.Diagnosis != nil ||
						crashed.Load() != dies {
						t.Errorf("the instance is %s with diagnosis %+v; crashed: %v",
							now.Status, now.Diagnosis, crashed.Load())
					}
					end, err := h.Provider.ReadTerminalEvent(t.Context(), in.ExecutionID)
					if err != nil || end.Kind != history.OrchestrationTerminated || end.Message != "give up" {
						t.Errorf("ended with %s, %v, want the termination", end.String(), err)
					}
				})
			})
		}
	}
}

// 1. A client sends messages to an instance.
// 2. The instance is purged, and another instance starts with the same ID.
// 3. The messages arrive and are dropped.
func TestMessage_ofAnEarlierIncarnation_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		begin := func() provider.Instance {
			if _, err := c.Start(ctx, "sleeper", 0, client.WithInstanceID("id")); err != nil {
				t.Fatal(err)
			}
			h.turn(0)
			in, err := h.Provider.ReadInstance(ctx, "id")
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		begin()
		raise := func(n int) error { return c.RaiseEvent(ctx, "id", "add", n, client.WithEventID("the same")) }
		if err := errors.Join(
			raise(1), c.Cancel(ctx, "id", "enough"), c.Terminate(ctx, "id", "enough"),
			c.Purge(ctx, "id", client.Force()),
		); err != nil {
			t.Fatal(err)
		}
		next := begin()
		h.serveFor(time.Minute)
		if now := h.read(next); now.Status != provider.StatusRunning || len(h.events(next)) != 3 {
			t.Errorf("the later incarnation is %s with %d events, want running with 3", now.Status, len(h.events(next)))
		}
		if err := raise(2); err != nil { // within the deduplication interval of the queue
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		if err := c.RaiseEvent(ctx, "id", "add", 3); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		if end, err := h.Provider.ReadTerminalEvent(ctx, next.ExecutionID); err != nil || string(end.Output) != "5" {
			t.Errorf("ended with %s %s, %v, want 5", end.String(), end.Output, err)
		}
	})
}
