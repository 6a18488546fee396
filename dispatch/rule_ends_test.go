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

// leaver is a registry of an orchestration that has an activity, a timer and a child outstanding, and then asks for more than a
// commit can hold, once it is told to.
func leaver() *perdure.Registry {
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

// wantGivenUp checks that the end was decided together with the cancel of what was outstanding, and that it is told.
func (h *hub) wantGivenUp(in provider.Instance, reason string, end history.Kind) {
	h.t.Helper()
	events := h.events(in)
	var got []history.Event
	for _, e := range events[len(events)-4:] {
		got = append(got, history.Event{Kind: e.Kind, SourceEventID: e.SourceEventID, InstanceID: e.InstanceID, Reason: e.Reason})
	}
	want := []history.Event{
		{Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: reason},
		{Kind: history.TimerCancelled, SourceEventID: 4, Reason: reason},
		{Kind: history.SubOrchestrationCancelRequested, SourceEventID: 5, InstanceID: "the child", Reason: reason},
		{Kind: end},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Error(diff)
	}
	cancels, _, err := h.Provider.ReadCancels(h.t.Context(), in.ExecutionID, 0)
	if c := cancels.Of(3); err != nil || !c.Requested || c.Reason != reason {
		h.t.Errorf("the cancel record says %+v, %v", c, err)
	}
	h.serveFor(time.Minute)
	if child, err := h.Provider.ReadInstance(h.t.Context(), "the child"); err != nil || child.Status != provider.StatusCancelled {
		h.t.Errorf("the child is %s, %v", child.Status, err)
	}
}

// No code takes part in the end of an instance that is terminated while it is blocked: what it waited for is given up all the same.
func TestABlockedInstanceThatIsTerminatedGivesUpWhatIsOutstanding(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: leaver()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0) // of the child
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		if failed := h.give(h.orchestrator(versions("1"), "broken")); len(failed) > 0 {
			t.Fatal("it needs code to be terminated")
		}
		h.wantGivenUp(in, string(perdure.ReasonOrchestrationTerminated), history.OrchestrationTerminated)
	})
}

// The same where the code wants to fail.
func TestAnInstanceThatFailsOfNondeterminismGivesUpWhatIsOutstanding(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: leaver()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0)
		h.raise(in, "", 1)
		strict := h.orchestrator(sleeper(2, "plus", perdure.FailOnNondeterminism()), "strict")
		for range 3 {
			h.give(strict)
			time.Sleep(10 * time.Minute)
		}
		h.wantGivenUp(in, string(perdure.ReasonOrchestrationFailed), history.OrchestrationFailed)
	})
}

// And where a turn decided more than a commit can hold, also when a wake stands behind the message that led to it.
func TestR2ATurnThatIsTooLargeGivesUpWhatIsOutstanding(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string][]provider.Message{"alone": nil, "with a wake": {{Kind: provider.MessageWake}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: leaver()}, func(_ context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.turn(0)
				h.turn(0)
				h.raise(in, "", 30) // 5 MB
				for _, m := range behind {
					m.InstanceID, m.ExecutionID = in.InstanceID, in.ExecutionID
					h.send(m)
				}
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("failed %v", failed)
				}
				h.wantGivenUp(in, string(perdure.ReasonOrchestrationFailed), history.OrchestrationFailed)
			})
		})
	}
}

// Nor does the end of an instance whose history cannot be read need anybody to read it, whether it is blocked by now or not; also
// when its function dies on the way.
func TestAnInstanceWhoseHistoryCannotBeReadCanBeTerminated(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"at once": 0, "when blocked": 2 * time.Hour} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dies=%v", name, dies), func(t *testing.T) {
				t.Parallel()
				intercept, crashed := crashOnce(true, func(c simaws.Call) bool {
					in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
					return dies && ok && in.TransactItems[0].Put != nil && text(in.TransactItems[0].Put.Item, "sk") == "h#0000000002"
				})
				inBubble(t, simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1, Intercept: intercept}, func(_ context.Context, h *hub) {
					in := h.start("sleeper", 0)
					h.turn(0)
					h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
					h.raise(in, "e", 5)
					h.serveFor(after)
					h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "give up"})
					h.serveFor(time.Hour)
					if now := h.read(in); now.Status != provider.StatusTerminated || now.Diagnosis != nil || crashed.Load() != dies {
						t.Errorf("it is %s, %+v; crashed: %v", now.Status, now.Diagnosis, crashed.Load())
					}
					end, err := h.Provider.ReadTerminalEvent(t.Context(), in.ExecutionID)
					if err != nil || end.Kind != history.OrchestrationTerminated || end.Message != "give up" {
						t.Errorf("it ended with %s, %v", end.String(), err)
					}
				})
			})
		}
	}
}

// Interleaving: what a client has sent to an instance is still on its way when that is purged, and another started by the same id. It
// is not for the other.
func TestWhatWasSentToTheLastLifeIsNotForTheNext(t *testing.T) {
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
		if err := errors.Join(raise(1), c.Cancel(ctx, "id", "enough"), c.Terminate(ctx, "id", "enough"), c.Purge(ctx, "id", client.Force())); err != nil {
			t.Fatal(err)
		}
		next := begin()
		h.serveFor(time.Minute)
		if now := h.read(next); now.Status != provider.StatusRunning || len(h.events(next)) != 3 {
			t.Errorf("it is %s, with %d events", now.Status, len(h.events(next)))
		}
		if err := raise(2); err != nil { // within the queue's memory of duplicates
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		if err := c.RaiseEvent(ctx, "id", "add", 3); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		if end, err := h.Provider.ReadTerminalEvent(ctx, next.ExecutionID); err != nil || string(end.Output) != "5" {
			t.Errorf("it ended with %s %s, %v", end.String(), end.Output, err)
		}
	})
}
