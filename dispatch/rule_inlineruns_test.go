package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// What meets a step that runs on through a commit: conflicts, pauses, ends, blocks, and large turns.

// napping is a workshop whose steps take as many milliseconds as they are given; in a worker they take none. why is why the last was stopped.
func napping() (w *workshop, why *atomic.Value) {
	w, why = &workshop{}, &atomic.Value{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken != "" {
			return n, nil
		}
		err := sleepFor(ctx, time.Duration(n)*time.Millisecond)
		if c, ok := errors.AsType[*perdure.CancelledError](err); ok {
			why.Store(c.Reason)
		}
		return n, err
	}
	return w, why
}

// shortAndLong has a step of a millisecond and one of n; behind the short one is what it is given.
func shortAndLong(between func(ctx *perdure.OrchestrationContext) error) func(*perdure.OrchestrationContext, int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		long := callWork(ctx, n)
		if _, err := callWork(ctx, 1).Await(ctx); err != nil {
			return 0, err
		}
		if between != nil {
			if err := between(ctx); err != nil {
				return 0, err
			}
		}
		return long.Await(ctx)
	}
}

// A turn of another process is found by the commit: what runs is stopped and dropped, and the step goes on by what is history.
func TestR20AConflictDropsWhatRuns(t *testing.T) {
	t.Parallel()
	w, why := napping()
	inWorkshop(t, w, simhub.Options{Environments: 2}, shortAndLong(nil), func(ctx context.Context, h *hub) {
		in := h.start("works", 1500)
		conflicts := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000001") && conflicts == 0 {
				conflicts++
				h.meanwhile(in)
			}
			return next()
		})
		if end := h.finish(in); string(end.Output) != "1500" || conflicts != 1 {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		if why.Load() != perdure.ReasonLockLost {
			t.Errorf("the step that ran was stopped for %v", why.Load())
		}
		h.checkRest()
	})
}

// meanwhile has another environment take a turn of the instance, as one does that was delivered the same message.
func (h *hub) meanwhile(in provider.Instance) {
	h.t.Helper()
	p := h.Provider
	o, err := p.ReadOrchestration(h.t.Context(), &provider.OrchestrationItem{InstanceID: in.InstanceID}, provider.Strong)
	if err != nil {
		h.t.Fatal(err)
	}
	events, _ := o.Events()
	last := events[len(events)-1].ID
	turn := &provider.Turn{
		InstanceID: in.InstanceID, Head: o.Head, Watermark: o.Head.Watermark, Before: o.State(history.TrackTimers),
		Events: []history.Event{{ID: last + 1, Kind: history.TurnStarted, Time: time.Now().UTC(), BuildID: "test"}},
	}
	turn.Events = append(turn.Events,
		history.Event{ID: last + 2, Kind: history.ActivityScheduled, Time: time.Now().UTC(), Name: "work", Queue: "default", Input: history.Payload("1500"), Inline: true},
		history.Event{ID: last + 3, Kind: history.ActivityScheduled, Time: time.Now().UTC(), Name: "work", Queue: "default", Input: history.Payload("1"), Inline: true})
	if _, err := p.AckOrchestrationItem(h.t.Context(), turn); err != nil {
		h.t.Fatal(err)
	}
}

// A step that has outlived a commit, and overruns, is sent behind the next commit: once, and its outcome is the worker's.
func TestR20AStepThatOverrunsBehindACommitIsSent(t *testing.T) {
	t.Parallel()
	w, why := napping()
	inWorkshop(t, w, simhub.Options{}, shortAndLong(nil), func(_ context.Context, h *hub) {
		in := h.start("works", 30_000)
		began := time.Now()
		if end := h.finish(in); string(end.Output) != "30000" || end.Time.Sub(began) > 4*time.Second {
			t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
		}
		w.wantRuns(t, 3, 1)
		if why.Load() != perdure.ReasonInvocationDeadline {
			t.Errorf("it was stopped for %v", why.Load())
		}
		h.checkRest()
	})
}

// A process that dies between that commit and what it sends leaves the step to the redispatch.
func TestR20ACrashWhileAStepThatOverrunsIsSent(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			w, _ := napping()
			intercept, calls := simhub.CrashAt(n, after)
			inWorkshop(t, w, simhub.Options{Intercept: intercept, Environments: 2}, shortAndLong(nil), func(_ context.Context, h *hub) {
				if end := h.finish(h.start("works", 30_000)); string(end.Output) != "30000" {
					t.Errorf("crash at %d, after %v: ended with %s %s", n, after, end.String(), end.Output)
				}
				h.checkRest()
			})
			if calls.Load() < n || t.Failed() {
				break
			}
		}
	}
}

// A pause comes before what a step has led to: the step that still runs goes on in its queue, and its outcome is parked.
func TestR20APauseFindsAStepThatRuns(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	inWorkshop(t, w, simhub.Options{}, shortAndLong(nil), func(ctx context.Context, h *hub) {
		in := h.start("works", 1500)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
		h.serveFor(time.Minute)
		if now := h.read(in); now.Status != provider.StatusPaused {
			t.Errorf("it is %s", now.Status)
		}
		w.wantRuns(t, 3, 1)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
		if end := h.finish(in); string(end.Output) != "1500" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 3, 1)
		h.checkRest()
	})
}

// An order to terminate is of the turn that it is behind, as any message: no step of that begins.
func TestR20ATerminateBehindTheTriggerRunsNoStep(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	inWorkshop(t, w, simhub.Options{}, shortAndLong(nil), func(ctx context.Context, h *hub) {
		in := h.start("works", 1500)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID}))
		began := time.Now()
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated || end.Time.Sub(began) > time.Second {
			t.Errorf("ended with %s after %v", end.String(), end.Time.Sub(began))
		}
		w.wantRuns(t, 0, 0)
		h.checkRest()
	})
}

// Code that cannot go on leaves what runs to its queue; its outcome waits for code that can.
func TestR20ABlockedInstanceHandsItsStepsOver(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	hangs := shortAndLong(func(*perdure.OrchestrationContext) error { time.Sleep(time.Hour); return nil })
	inWorkshop(t, w, simhub.Options{TurnLimit: 300 * time.Millisecond}, hangs, func(_ context.Context, h *hub) {
		in := h.start("works", 1500)
		h.serveFor(20 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("it is %s", now.Status)
		}
		w.wantRuns(t, 3, 1)       // it was sent, and once
		time.Sleep(5 * time.Hour) // the bubble waits for the bodies
	})
}

// What the turn that schedules a step cancels does not begin.
func TestR20WhatIsCancelledAtOnceDoesNotRun(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, cancel := perdure.WithCancel(ctx)
		callWork(scope, 1)
		cancel()
		return callWork(ctx, 2).Await(ctx)
	}
	inWorkshop(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		h.finish(h.start("works", 0))
		w.wantRuns(t, 1, 0)
		h.checkRest()
	})
}

// A commit that its decisions fill takes no outcomes beside them: they come with the next.
func TestR20OutcomesBesideDecisionsThatFillACommit(t *testing.T) {
	t.Parallel()
	r, ran := perdure.NewRegistry(), atomic.Int64{}
	perdure.AddActivity(r, "large", func(_ context.Context, n int) (string, error) {
		ran.Add(1)
		return letters(n), nil
	}, perdure.Inline())
	perdure.AddActivity(r, "length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, n int) (total int, err error) {
		var larges []*perdure.Future[string]
		var lengths []*perdure.Future[int]
		for i := range n {
			larges = append(larges, perdure.CallActivityByName[string](ctx, "large", i))
			if i < 16 {
				lengths = append(lengths, perdure.CallActivityByName[int](ctx, "length", letters(i)))
			}
		}
		for _, f := range larges {
			s, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			total += len(s)
		}
		more, err := sumOf(ctx, lengths)
		return total + more, err
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		if end := h.finish(h.start("works", 40)); string(end.Output) != fmt.Sprint(56*190_000) || ran.Load() != 40 {
			t.Errorf("ended with %s %s %v, %d runs", end.String(), end.Output, end.Error, ran.Load())
		}
		h.checkRest()
	})
}

// A large turn is sent with a cursor, which says of all events up to one that they are sent: no step runs on through its commit.
func TestR20ALargeTurnKeepsNoStep(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		long := callWork(ctx, n)
		var fs []*perdure.Future[int]
		for i := range 1500 {
			fs = append(fs, perdure.CallActivity(ctx, inc, i))
		}
		if _, err := callWork(ctx, 1).Await(ctx); err != nil {
			return 0, err
		}
		if _, err := sumOf(ctx, fs); err != nil {
			return 0, err
		}
		return long.Await(ctx)
	}
	crash, crashed := crashOnce(true, writesCursor)
	inWorkshop(t, w, simhub.Options{Intercept: crash}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 1500)
		h.serveFor(24 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusCompleted || !crashed.Load() {
			t.Errorf("it is %s, crashed %v", now.Status, crashed.Load())
		}
	})
}

// writesCursor reports whether a call stores how far a large turn is sent.
func writesCursor(c simaws.Call) bool {
	for _, it := range itemsPut(c) {
		if strings.HasPrefix(text(it, "sk"), "o#") {
			return true
		}
	}
	return false
}

// Ten instances of a batch run their steps side by side: the batch takes as long as one.
func TestR20InstancesOfABatchRunTheirStepsSideBySide(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	inWorkshop(t, w, simhub.Options{}, func(ctx *perdure.OrchestrationContext, n int) (int, error) { return callWork(ctx, n).Await(ctx) }, func(_ context.Context, h *hub) {
		for i := range 10 {
			h.startAs(fmt.Sprint("i-", i), "works", 1000)
		}
		began := time.Now()
		h.turn(0)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("ten instances took %v", took)
		}
		w.wantRuns(t, 10, 0)
	})
}

// In a process that polls a step ends before the lock of its messages does, with time for the commit.
func TestR20AStepEndsBeforeTheLockOfItsMessages(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	inWorkshop(t, w, simhub.Options{InlineTimeout: time.Minute}, nil, func(ctx context.Context, h *hub) {
		h.start("works", 20_000)
		w.code = func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, 20*time.Second) }
		records := h.receive(h.Provider.Config().InboxURL)
		locked := time.Now().Add(5 * time.Second)
		for i := range records {
			records[i].Hold = provider.NewHold(time.Now(), 5*time.Second)
		}
		if failed := h.Orchestrators[0].HandleRecords(ctx, records); len(failed) > 0 || time.Now().After(locked) {
			t.Errorf("failed %v, %v before the lock is over", failed, time.Until(locked))
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("%d work items", n)
		}
	})
}

// Whoever asks an instance replays it, and runs no step.
func TestR20AQueryRunsNoStep(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	body := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		must(0, perdure.SetQueryHandler(ctx, "at", func(int) (int, error) { return v, nil }))
		for range n {
			if v, err = callWork(ctx, v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, perdure.Sleep(ctx, time.Hour)
	}
	inWorkshop(t, w, simhub.Options{Environments: 2}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 4)
		h.serveFor(time.Minute)
		for _, o := range h.Orchestrators {
			if got, err := h.askOf(o, "at", "0"); err != nil || got != "4" {
				t.Errorf("answered %s, %v", got, err)
			}
		}
		w.wantRuns(t, 4, 0)
		h.finish(in)
	})
}

// letters are 190 KB that do not compress well.
func letters(seed int) string {
	rng, b := rand.New(rand.NewPCG(uint64(seed), 1)), make([]byte, 190_000)
	for i := range b {
		b[i] = 'a' + byte(rng.IntN(26))
	}
	return string(b)
}

// A turn that is too large takes fewer outcomes, and is made again: a step that runs meanwhile is sent by a repeated dispatch, and is not lost.
func TestR20ATurnThatIsTooLargeFindsAStepThatRuns(t *testing.T) {
	t.Parallel()
	w, _ := napping()
	o := simhub.Options{Registry: w.registry(func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		long := callWork(ctx, n)
		var parts []*perdure.Future[int]
		for i := range 8 {
			parts = append(parts, perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
				if _, err := callWork(ctx, 1).Await(ctx); err != nil {
					return 0, err
				}
				var fs []*perdure.Future[int]
				for j := range 3 {
					fs = append(fs, perdure.CallActivityByName[int](ctx, "length", letters(10*i+j)))
				}
				return sumOf(ctx, fs)
			}))
		}
		if _, err := sumOf(ctx, parts); err != nil {
			return 0, err
		}
		return long.Await(ctx)
	})}
	perdure.AddActivity(o.Registry, "length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	inBubble(t, o, func(_ context.Context, h *hub) {
		in := h.start("works", 1900)
		h.serveFor(24 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusCompleted {
			t.Errorf("it is %s", now.Status)
		}
		if _, outside := w.ran(); outside == 0 {
			t.Error("no step was sent: the turn was not too large")
		}
	})
}
