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

// pausedWith starts the sleeper with a plan, pauses it, and sends numbers that are parked.
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

// More inputs are parked than one commit of the code holds. After a resume, turns consume the inputs in parts. The
// process crashes at any call. It crashes before a commit, between a commit and its dispatch, during the dispatch,
// between two parts, or before the message is deleted. The outputs of every part are sent, and the inputs keep the
// order of their arrival.
func TestR25_parkedInputsInParts_surviveCrashAtAnyCall(t *testing.T) {
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
					o := simhub.Options{
						Registry: planRegistry("add"),
						Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
							hit := resumed.Load() && calls.Add(1) == n
							return hit && !after, hit && after
						}),
					}
					inBubble(t, o, func(_ context.Context, h *hub) {
						in := h.pausedWith(c.plan, 7)
						old := h.Orchestrators[0]
						h.Orchestrators[0] = h.withSmallCommits(planRegistry("add"), "narrow", c.most)
						h.resume(in, "r1")
						resumed.Store(true)
						h.serveFor(2 * time.Hour)
						if end := h.end(in); string(end.Output) != fmt.Sprint(c.plan.All) {
							t.Errorf("crash at call %d: ended with %s, output %s, error %v",
								n, end.String(), end.Output, end.Error)
						}
						if !slices.ContainsFunc(h.stored(in.ExecutionID), func(e history.Event) bool {
							return e.ParkedConsumed > 0
						}) {
							t.Errorf("crash at call %d: no turn consumed only parked inputs", n)
						}
						h.checkIdle()
						h.wantInstances(c.instances)
						old.Close()
					})
					crashed = calls.Load() >= n
				}
			})
		}
	}
}

// A pause arrives while turns consume parked inputs in parts. It applies before the remaining parts. After the next
// resume, turns consume the remaining parts before all later inputs.
func TestR25_pauseBetweenParts_appliesBeforeTheRest(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: planRegistry("add")}, func(_ context.Context, h *hub) {
		in := h.pausedWith(plan{All: 8, Leaves: true}, 7)
		old := h.Orchestrators[0]
		defer old.Close()
		h.Orchestrators[0] = h.withSmallCommits(planRegistry("add"), "narrow", 8)
		h.resume(in, "r1")
		h.pause(in, "p2")
		h.raise(in, "the last", 7)
		h.turn(0)
		h.wantStatus(in, provider.StatusPaused)
		state := history.NewState(0, h.stored(in.ExecutionID)...)
		if state.Parked != 8 {
			t.Errorf("got %d parked inputs, want 8: the pause precedes the first part", state.Parked)
		}
		h.resume(in, "r2")
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != "8" {
			t.Errorf("ended with %s, output %s, error %v, want 8", end.String(), end.Output, end.Error)
		}
		h.checkIdle()
	})
}

// SQS rejects outputs of the turn before a pause. The session records the rejection, and the code receives it after the
// resume.
func TestR25_outputIsRejectedBeforeAPause_isRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		h.pause(in, "p1")
		h.turn(0)
		h.wantPaused(in)
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.InputsParked || len(last.Inputs) != 1 ||
			last.Inputs[0].Kind != history.OutputFailed {
			t.Errorf("last event: got %+v, want the parked output failure", last)
		}
		h.resume(in, "r1")
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, want completed", end.String())
		}
		h.checkIdle()
	})
}

// Many messages for a paused instance are processed without its code, with one write per batch and no read. After the
// resume, the code consumes all of them.
func TestR25_burstToPausedInstance_drainsWithoutReads(t *testing.T) {
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
						Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add",
						EventID: fmt.Sprint("e", sent+i+j), Data: history.Payload("1"),
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
					t.Fatalf("got a read (%s), want none", op)
				}
			}
		}
		h.wantPaused(in)
		h.resume(in, "r1")
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != fmt.Sprint(events) {
			t.Errorf("ended with %s, output %s, error %v, want %d", end.String(), end.Output, end.Error, events)
		}
		h.checkIdle()
	})
}

// An environment that has not cached a paused instance parks its messages without running its code.
func TestR25_pausedInstanceIsNotCached_runsNoCode(t *testing.T) {
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
			t.Errorf("code ran %d times, want once", n)
		}
		h.resume(in, "r1")
		h.turn(2)
		h.wantStatus(in, provider.StatusCompleted)
	})
}

// The status of a pause before the first turn and its refresh are lost. The sweeper wakes the pending instance once,
// and then the status is Paused.
func TestR25_statusOfPauseIsLost_wakeRestoresIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.emptyInbox()
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
			if woken, err := h.Renewer.Sweep(ctx); woken != want || err != nil {
				t.Errorf("got %d wakes, error %v, want %d", woken, err, want)
			}
			h.turns()
			h.wantPaused(in)
			time.Sleep(2 * time.Hour)
		}
	})
}
