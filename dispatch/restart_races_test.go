package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests restart instances from an event concurrently with other changes (R30 in docs/internals/rules.md).

// restartEach restarts an instance from each restart point, and purges the old instance before the first turns of the
// new ones.
func (h *hub) restartEach(in provider.Instance) (all []provider.Instance) {
	h.t.Helper()
	over := h.read(in)
	past := h.events(over)
	for i := range past {
		if history.CheckRestartPoint(past, past[i].ID) == nil {
			all = append(all, h.restart(in.InstanceID, fmt.Sprint("from-", past[i].ID), past[i].ID))
		}
	}
	if len(all) == 0 {
		h.t.Fatal("got no restart point")
	}
	h.purge(in.InstanceID)
	return all
}

// Events refer to large documents in earlier executions, other segments, or parked inputs. A restart has all documents,
// even after the old instance is purged.
func TestR30_oldInstanceIsPurged_documentsRemain(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]int{"carried from execution to execution": 2, "in one execution": 7} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: collectorRegistry("add")}, func(ctx context.Context, h *hub) {
				in := h.start("sleeper", collectInput{All: 7, Each: each})
				h.serveFor(time.Second)
				h.pause(in, "p1")
				h.serveFor(time.Second)
				h.post(in, 6)
				h.serveFor(time.Minute)
				h.resume(in, "r1")
				h.serveFor(time.Second)
				h.post(in, 7)
				h.finish(in)
				h.wantAll(ctx, in, 7)

				for _, again := range h.restartEach(in) {
					h.post(again, 7)
					if end := h.finish(again); string(end.Output) != "7" {
						t.Errorf("%s ended with %s, output %s, error %v, want 7",
							again.InstanceID, end.Kind, end.Output, end.Error)
					}
				}
				h.checkIdle()
			})
		})
	}
}

// The old instance is purged during a restart. Either the restart finds no history, or the new instance has all its
// documents.
func TestR30_purgeAtAnyCall_restartFailsOrIsComplete(t *testing.T) {
	t.Parallel()
	refused, made := 0, 0
	for n, more := int64(1), true; more && !t.Failed(); n++ {
		var calls atomic.Int64
		var purges func()
		o := simhub.Options{
			Registry: collectorRegistry("add"),
			Intercept: func(_ context.Context, _ simaws.Call, next func() error) error {
				if purge := purges; purge != nil && calls.Add(1) == n {
					purges = nil
					purge()
					purges = func() {}
				}
				return next()
			},
		}
		inBubble(t, o, func(ctx context.Context, h *hub) {
			in := h.start("sleeper", collectInput{All: 3, Each: 9})
			h.post(in, 3)
			h.finish(in)
			past := h.events(h.read(in))
			purges = func() { h.purge(in.InstanceID) }
			id, err := h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(cutAt(past, int64(len(past)-2))))
			purges = nil
			switch {
			case errors.Is(err, client.ErrNotFound):
				refused++
				h.wantInstances(min(1, int(max(n-calls.Load(), 0))))
			case err != nil:
				t.Errorf("purge at call %d: got error %v", n, err)
			default:
				made++
				again := must(h.Provider.ReadInstance(ctx, id))
				h.post(again, 3)
				h.finish(again)
				h.wantAll(ctx, again, 3)
			}
		})
		more = calls.Load() >= n
	}
	if refused == 0 || made == 0 {
		t.Errorf("got %d failed and %d successful restarts, want both", refused, made)
	}
}

// A blocked or paused instance that was terminated can be restarted. Its parked inputs are consumed in the order of
// their arrival.
func TestR30_parkedInputs_areConsumedInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("pauses", pausing{Events: 3})
		h.serveFor(time.Second)
		h.pause(in, "p1")
		for n := range 3 {
			h.raise(in, fmt.Sprint("e", n), n)
			h.serveFor(time.Second)
		}
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID})
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated {
			t.Fatalf("ended with %s, want terminated", end.String())
		}
		past := h.events(h.read(in))
		parked := past[lastOf(past, history.InputsParked)].ID
		again := h.restart(in.InstanceID, "again", parked)
		h.serveFor(time.Second)
		if now := h.read(again); now.Status != provider.StatusRunning && now.Status != provider.StatusCompleted {
			t.Errorf("got status %s, want Running or Completed", now.Status)
		}
		if end := h.finish(again); string(end.Output) != `"received [0 1 2]"` {
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
		h.checkIdle()
	})
}

func TestR30_blockedInstance_continuesInFixedCode(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(3, "plus")}, func(ctx context.Context, h *hub) {
		in := h.block(sleeper(3, "add"))
		h.burst(in, 3)
		h.turn(0)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID})
		h.turn(0)
		past := h.events(h.read(in))
		if !h.read(in).Status.Terminal() {
			t.Fatalf("got status %s, want Terminated", h.read(in).Status)
		}

		again := h.restart(in.InstanceID, "again", past[lastOf(past, history.InputsParked)].ID)
		h.passRecords(h.orchestrator(sleeper(3, "add"), "after"))
		if end := must(h.Provider.ReadTerminalEvent(ctx, again.ExecutionID)); string(end.Output) != "3" {
			t.Errorf("ended with %s, output %s, want 3", end.String(), end.Output)
		}
	})
}

// lastOf returns the index of the last event of a kind.
func lastOf(events []history.Event, kind history.Kind) int {
	for i := len(events) - 1; ; i-- {
		if events[i].Kind == kind {
			return i
		}
	}
}

// Restarts from different events are different instances, and each is started once.
func TestR30_restartsFromDifferentEvents_areDifferentInstances(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 3)
		want := h.finish(in)
		past := h.events(in)
		ids := map[string]bool{}
		cuts := int64(0)
		for i := range past {
			if history.CheckRestartPoint(past, past[i].ID) != nil {
				continue
			}
			cuts++
			for range 2 {
				ids[must(h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(past[i].ID)))] = true
			}
		}
		ids[must(h.restarter().Restart(ctx, in.InstanceID))] = true
		if h.wantInstances(int(cuts) + 2); int64(len(ids)) != cuts+1 {
			t.Errorf("got %d instances, want %d", len(ids), cuts+1)
		}
		for id := range ids {
			if end := h.finish(must(h.Provider.ReadInstance(ctx, id))); string(end.Output) != string(want.Output) {
				t.Errorf("%s ended with %s, output %s", id, end.String(), end.Output)
			}
		}
		h.checkIdle()
	})
}

// charges is an orchestration that charges once, and then has a bug until fixed is set.
type charges struct {
	mu      sync.Mutex
	charged int
	fixed   bool
}

func (c *charges) isFixed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixed
}

func (c *charges) registry(opts ...perdure.ActivityOption) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.charged++
		return c.charged, nil
	}, opts...)
	perdure.AddOrchestration(r, "buys", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		n, err := perdure.CallActivityByName[int](ctx, "charge", 1).Await(ctx)
		if err != nil {
			return "", err
		}
		if !c.isFixed() {
			return "", errors.New("the receipt has no number")
		}
		return fmt.Sprint("receipt ", n), nil
	})
	return r
}

// A restart from the input on which the code failed delivers the outcome to the current code. The task of the outcome
// does not run again.
func TestR30_restartFromLastInput_currentCodeConsumesIt(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]perdure.ActivityOption{"queued": nil, "inline": {perdure.Inline()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &charges{}
			inBubble(t, simhub.Options{Registry: c.registry(opts...)}, func(ctx context.Context, h *hub) {
				in := h.start("buys", 1)
				if end := h.finish(in); end.Kind != history.OrchestrationFailed {
					t.Fatalf("ended with %s, want failed", end.String())
				}
				c.mu.Lock()
				c.fixed = true
				c.mu.Unlock()
				past := h.events(in)
				from := past[lastOf(past, history.ActivityCompleted)].ID
				again := h.restart(in.InstanceID, "again", from)
				if end := h.finish(again); string(end.Output) != `"receipt 1"` || c.charged != 1 {
					t.Errorf("ended with %s, output %s, charged %d times", end.String(), end.Output, c.charged)
				}
				h.wantReplays(c.registry(opts...), h.read(again))
				h.checkIdle()
				_ = ctx
			})
		})
	}
}

// A token of the old execution cannot complete the activity of the new execution, which has another token.
func TestR30_tokenOfOldExecution_isRejected(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("hands-over", false)
		h.serveFor(time.Second)
		old := provider.WorkItem{
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Attempt: 1,
			Queue: "default",
		}
		token := must(h.Provider.CompletionTokens(ctx)).SignCompletion(&old)
		h.terminate(in)

		again := h.restart(in.InstanceID, "again", 3)
		h.serveFor(time.Minute)
		if err := client.New(h.Provider).CompleteActivity(ctx, token, "too late"); err == nil {
			t.Error("got no error for the old token")
		}
		h.serveFor(time.Minute)
		h.wantStatus(again, provider.StatusRunning)
		completeLater(h, again, 0, 3)
		if end := h.finish(again); string(end.Output) != `"answered"` {
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
		h.checkIdle()
	})
}

// No restart is possible while a cancel waits for an end, because the worker sends that end to the old execution. The
// error names the field.
func TestR30_restartWhileCancelWaits_isRejected(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "slow", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "waits-for-ends", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "slow", 1, perdure.WaitForCancellation()).Await(ctx)
		return "", err
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("waits-for-ends", 1)
		h.serveFor(5 * time.Second)
		h.send(provider.Message{
			Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested",
		})
		h.finish(in)
		past := h.events(in)
		requested := past[lastOf(past, history.ActivityCancelRequested)].ID
		if _, err := h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(requested)); !isFieldError(err,
			"from") {
			t.Errorf("got error %v, want a FieldError", err)
		}
		for i := range past {
			if history.CheckRestartPoint(past, past[i].ID) != nil {
				continue
			}
			again := h.restart(in.InstanceID, fmt.Sprint("from-", past[i].ID), past[i].ID)
			h.serveFor(5 * time.Second)
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: again.InstanceID, StartID: again.StartID, Reason: "requested",
			})
			if end := h.finish(again); end.Kind != history.OrchestrationCancelled {
				t.Errorf("restarted from event %d: ended with %s, want cancelled", past[i].ID, end.String())
			}
		}
		h.checkIdle()
	})
}

func isFieldError(err error, field string) bool {
	f, is := errors.AsType[*provider.FieldError](err)
	return is && f.Field == field
}

// A restarted instance is paused, terminated or cancelled before its first turn. Its open tasks are still sent, or
// ended.
func TestR30_pauseOrEndBeforeFirstTurn_applies(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(h *hub, in provider.Instance){
		"paused": func(h *hub, in provider.Instance) {
			h.pause(in, "p1")
			h.serveFor(time.Hour)
			h.resume(in, "r1")
		},
		"terminated": func(h *hub, in provider.Instance) {
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID})
		},
		"cancelled": func(h *hub, in provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested",
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios() {
				if !slices.Contains([]string{"fan", "children", "retries", "inline-mixed"}, s.name) {
					continue
				}
				inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
					in := h.start(s.name, s.input)
					want := h.finish(in)
					past := h.events(in)
					again := h.restart(in.InstanceID, "again", cutAt(past, 3))
					h.emptyInbox()
					order(h, again)
					if end := h.finish(again); name == "paused" && string(end.Output) != string(want.Output) {
						t.Errorf("%s ended with %s, output %s", s.name, end.String(), end.Output)
					}
					h.checkIdle()
				})
			}
		})
	}
}

// A restart that exceeds one transaction is rejected and starts nothing. A restart from an earlier event fits.
func TestR30_restartExceedsATransaction_isRejected(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "collects", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for range n {
			if _, err := perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		const events = 30
		in := h.start("collects", events)
		for n := range events {
			noise := make([]byte, 140<<10)
			_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(noise)
			h.send(provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: fmt.Sprint("e-", n),
				Data: encoded(t, noise),
			})
			h.serveFor(time.Second)
		}
		h.finish(in)
		past := h.events(in)
		last := cutAt(past, past[len(past)-3].ID)
		if _, err := h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(last)); !isFieldError(err, "from") ||
			!errors.Is(err, provider.ErrTooLarge) {
			t.Fatalf("got error %v, want a FieldError with ErrTooLarge", err)
		}
		h.wantInstances(1)

		again := h.restart(in.InstanceID, "again", cutAt(past, last/2))
		h.serveFor(time.Second)
		if now := h.read(again); now.Status != provider.StatusRunning {
			t.Errorf("got status %s, diagnosis %+v, want Running", now.Status, now.Diagnosis)
		}
		h.terminate(again)
		h.checkIdle()
	})
}

// terminate terminates an instance.
func (h *hub) terminate(in provider.Instance) {
	h.t.Helper()
	h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID})
	h.finish(in)
}
