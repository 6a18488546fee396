package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// pausedWith starts the sleeper with a plan, pauses it, and sends it numbers, which are parked.
func (h *hub) pausedWith(p plan, numbers int) provider.Instance {
	h.t.Helper()
	in := h.start("sleeper", p)
	h.turn(0)
	h.pause(in, "p1")
	h.turn(0)
	h.burst(in, numbers)
	h.serveFor(time.Hour)
	h.wantPaused(in)
	return in
}

// Interleavings: more was parked than a commit of the code holds. When the instance goes on, turns take it in parts. The process dies before a
// commit, between a commit and what follows from it, half-way through that, between two parts, before the message is deleted. All that every
// part has caused is sent, and the parts come in the order of their arrival.
func TestR25WhatWasParkedIsTakenInPartsAcrossACrashAtAnyCall(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		plan      plan
		most      int
		instances int
	}{
		"completes":                  {plan{All: 7}, 25, 1 + 14},
		"continues as new in a part": {plan{All: 7, Each: 2, Leaves: true}, 5, 1 + 7},
		"outputs are refused":        {plan{All: 7, Leaves: true, Fails: true}, 6, 1 + 7},
		"ends in a part":             {plan{All: 5, Leaves: true}, 10, 1 + 5},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", name, after), func(t *testing.T) {
				t.Parallel()
				for n, crashed := int64(1), true; crashed && !t.Failed(); n++ {
					var resumed atomic.Bool
					var calls atomic.Int64
					o := simhub.Options{Registry: planned("add"), Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
						hit := resumed.Load() && calls.Add(1) == n
						return hit && !after, hit && after
					})}
					inBubble(t, o, func(_ context.Context, h *hub) {
						in := h.pausedWith(c.plan, 7)
						old := h.Orchestrators[0]
						h.Orchestrators[0] = h.narrowed(planned("add"), "narrow", c.most)
						h.resume(in, "r1")
						resumed.Store(true)
						h.serveFor(2 * time.Hour)
						if end := h.end(in); string(end.Output) != fmt.Sprint(c.plan.All) {
							t.Errorf("crash at call %d: ended with %s %s %v", n, end.String(), end.Output, end.Error)
						}
						if !slices.ContainsFunc(h.stored(in.ExecutionID), func(e history.Event) bool { return e.ParkedConsumed > 0 }) {
							t.Errorf("crash at call %d: no turn took parked inputs alone", n)
						}
						h.checkRest()
						h.wantInstances(c.instances)
						old.Close()
					})
					crashed = calls.Load() >= n
				}
			})
		}
	}
}

// Interleaving: an order to pause comes while turns take what was parked in parts. It comes before the parts that are left: these are taken when
// the instance goes on again, behind nothing that came later.
func TestR25APauseComesBeforeThePartsThatAreLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: planned("add")}, func(_ context.Context, h *hub) {
		in := h.pausedWith(plan{All: 8, Leaves: true}, 7)
		old := h.Orchestrators[0]
		defer old.Close()
		h.Orchestrators[0] = h.narrowed(planned("add"), "narrow", 8)
		h.resume(in, "r1")
		h.pause(in, "p2")
		h.raise(in, "the last", 7)
		h.turn(0)
		h.wantStatus(in, provider.StatusPaused)
		state := history.NewState(0, h.stored(in.ExecutionID)...)
		if state.Parked != 8 {
			t.Errorf("%d inputs are parked, want all: the pause was there before the first part", state.Parked)
		}
		h.resume(in, "r2")
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != "8" {
			t.Errorf("ended with %s %s %v", end.String(), end.Output, end.Error)
		}
		h.checkRest()
	})
}

// Outputs of the turn before a pause are refused: that is recorded, and the code hears it when the instance goes on.
func TestR25WhatIsRefusedBeforeAPauseIsRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		h.pause(in, "p1")
		h.turn(0)
		h.wantPaused(in)
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.InputsParked || len(last.Inputs) != 1 || last.Inputs[0].Kind != history.OutputFailed {
			t.Errorf("history ends with %+v", last)
		}
		h.resume(in, "r1")
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.String())
		}
		h.checkRest()
	})
}

// A burst to a paused instance drains without its code, a write a batch and no read, and all of it comes out when it goes on.
func TestR25ABurstToAPausedInstanceDrains(t *testing.T) {
	t.Parallel()
	events := shortrun.Few(1000, 20_000)
	inBubble(t, simhub.Options{Registry: sleeper(events, "add")}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		for sent := 0; sent < events; sent += 100 {
			for i := 0; i < 100; i += 10 {
				var ms []provider.Message
				for j := range 10 {
					ms = append(ms, provider.Message{
						Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: fmt.Sprint("e", sent+i+j), Data: history.Payload("1"),
					})
				}
				h.send(ms...)
			}
			before := len(h.made())
			for range 10 {
				h.turn(0)
			}
			for _, op := range h.operations(before) {
				if op == "Query" || op == "GetItem" {
					t.Fatalf("it was read: %s", op)
				}
			}
		}
		h.wantPaused(in)
		h.resume(in, "r1")
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != fmt.Sprint(events) {
			t.Errorf("ended with %s %s %v", end.String(), end.Output, end.Error)
		}
		h.checkRest()
	})
}

// An environment that does not know a paused instance parks what arrives without a run of its code.
func TestR25NoCodeOfAPausedInstanceRunsInAColdEnvironment(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "counted", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		ran.Add(1)
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, Environments: 3}, func(_ context.Context, h *hub) {
		in := h.start("counted", 0)
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		h.raise(in, "", 7)
		h.turn(1)
		h.raise(in, "", 8)
		h.turn(2)
		h.wantPaused(in)
		if n := ran.Load(); n != 1 {
			t.Errorf("its code ran %d times, want the first turn alone", n)
		}
		h.resume(in, "r1")
		h.turn(2)
		h.wantStatus(in, provider.StatusCompleted)
	})
}

// The status of a pause before the first turn was lost, and so was its refresh: the watch wakes what shows Pending, once, and it shows Paused then.
func TestR25AWakeMendsTheStatusOfAPausedInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.loseWake()
		h.pause(in, "p1")
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "UpdateItem" || c.Operation == "SendMessageBatch" {
				return simhub.ErrFailed
			}
			return next()
		})
		h.turn(0)
		h.interfere(nil)
		h.wantStatus(in, provider.StatusPending)
		time.Sleep(10 * time.Minute)
		for _, want := range []int{1, 0} {
			if woken, err := h.Timekeeper.Sweep(ctx); woken != want || err != nil {
				t.Errorf("the watch woke %d, %v, want %d", woken, err, want)
			}
			h.turns()
			h.wantPaused(in)
			time.Sleep(2 * time.Hour)
		}
	})
}
