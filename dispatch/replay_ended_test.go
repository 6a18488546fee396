package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
)

// wantReplays fails the test unless the code of r replays an instance's history, like in a unit test of the user.
func (h *hub) wantReplays(r *perdure.Registry, in provider.Instance) {
	h.t.Helper()
	doc, err := history.NewDocument(in.InstanceID, in.Name, history.DocumentExecution{
		ExecutionID: in.ExecutionID, Number: 1, Events: h.events(in),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		h.t.Fatal(err)
	}
	perduretest.Replay(h.t, r, b)
}

// pairs returns a registry whose orchestration schedules two activities, a timer and a child. Builds differ in the name
// of the activities.
func pairs(name string, opts ...perdure.OrchestrationOption) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pairs", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		var fs []perdure.Awaitable
		for range 2 {
			fs = append(fs, perdure.CallActivityByName[int](ctx, name, "x"))
		}
		fs = append(fs, perdure.CreateTimer(ctx, time.Hour), perdure.CallSubOrchestrationByName[int](ctx, "another", 1))
		return 0, perdure.WhenAll(ctx, fs...)
	}, opts...)
	return r
}

// A build blocked an instance, parked outcomes, and was rolled back. Then the instance was terminated. The original
// code replays its history. It also replays the history of an instance that failed because of nondeterminism.
func TestReplay_instanceEndedWithoutCode_succeeds(t *testing.T) {
	t.Parallel()
	terminate := provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-1"}
	for name, c := range map[string]struct {
		parked, began bool
		opts          []perdure.OrchestrationOption
		end           provider.RuntimeStatus
	}{
		"terminated":                       {began: true, end: provider.StatusTerminated},
		"terminated with outcomes":         {began: true, parked: true, end: provider.StatusTerminated},
		"terminated before its first turn": {parked: true, end: provider.StatusTerminated},
		"failed because of nondeterminism": {
			began: true, parked: true, opts: []perdure.OrchestrationOption{perdure.FailOnNondeterminism()},
			end: provider.StatusFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := pairs("a", c.opts...)
			inBubble(t, simhub.Options{Registry: good}, func(_ context.Context, h *hub) {
				in := h.start("pairs", 0)
				broken := h.orchestrator(pairs("b", c.opts...), "broken")
				if c.began {
					h.turn(0)
				} else {
					broken = h.orchestrator(perdure.NewRegistry(), "broken")
				}
				if c.parked {
					h.complete(in, 0, 4)
				} else {
					h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
				}
				for range 4 {
					h.passRecords(broken)
					time.Sleep(10 * time.Minute)
				}
				if now := h.read(in); c.end == provider.StatusTerminated && now.Status != provider.StatusBlocked {
					t.Fatalf("the instance is %s, want blocked", now.Status)
				}
				h.send(terminate)
				h.passRecords(broken)
				if now := h.read(in); now.Status != c.end {
					t.Fatalf("the instance is %s, want %s", now.Status, c.end)
				}
				h.wantReplays(good, h.read(in))
			})
		})
	}
}

// A turn failed because its decisions exceeded a commit. The decisions are not in history, so fixed code is not
// compared with them.
func TestReplay_turnExceededACommit_succeeds(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pairs", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for range 100 {
			perdure.CallActivityByName[int](ctx, "a", noise(ctx, 100<<10))
		}
		return 0, perdure.Sleep(ctx, time.Hour)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("pairs", 0)
		h.turn(0)
		if now := h.read(in); now.Status != provider.StatusFailed {
			t.Fatalf("the instance is %s, want failed", now.Status)
		}
		h.wantReplays(pairs("a"), h.read(in))
	})
}

// The first batch contains a cancel and a termination. The instance is terminated.
func TestTerminate_cancelInTheSameFirstBatch_instanceIsTerminated(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: pairs("a")}, func(_ context.Context, h *hub) {
		in := h.start("pairs", 0)
		h.send(
			provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
				RequestedBy: history.RequestedByClient,
			},
			provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "at once"},
		)
		h.turn(0)
		now := h.read(in)
		if now.Status != provider.StatusTerminated {
			t.Errorf("the instance is %s, want terminated", now.Status)
		}
		if events := h.events(now); events[len(events)-1].Message != "at once" {
			t.Errorf("ended with %s, want the message of the termination", events[len(events)-1].String())
		}
		h.wantReplays(pairs("a"), now)
		h.serveFor(time.Hour)
		h.checkIdle()
	})
}
