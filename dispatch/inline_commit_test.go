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

// These tests cover an inline activity that continues to run during a commit: conflicts, pauses, ends, blocks, and
// large turns.

// sleepingWork returns work whose inline activities take their input in milliseconds. In a worker they take no time.
// why is the reason of the last cancellation.
func sleepingWork() (w *inlineWork, why *atomic.Value) {
	w, why = &inlineWork{}, &atomic.Value{}
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

// shortAndLong returns an orchestration with inline activities of 1 and n milliseconds. It calls between after the
// short one.
func shortAndLong(between func(ctx *perdure.OrchestrationContext) error) func(*perdure.OrchestrationContext, int) (
	int, error,
) {
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

// The commit of a session conflicts with a turn of another process. The running inline activity is stopped and dropped,
// and the next turn uses the history.
func TestR20_conflict_dropsRunningActivities(t *testing.T) {
	t.Parallel()
	w, why := sleepingWork()
	withInlineWork(t, w, simhub.Options{Environments: 2}, shortAndLong(nil), func(ctx context.Context, h *hub) {
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
			t.Errorf("ended with %s %s after %d conflicts, want 1500 after 1", end.String(), end.Output, conflicts)
		}
		if why.Load() != perdure.ReasonLockLost {
			t.Errorf("the running activity was stopped with reason %v, want lock_lost", why.Load())
		}
		h.checkIdle()
	})
}

// meanwhile commits a turn of the instance, like another environment that received the same message.
func (h *hub) meanwhile(in provider.Instance) {
	h.t.Helper()
	p := h.Provider
	item := &provider.OrchestrationItem{InstanceID: in.InstanceID}
	o, err := p.ReadOrchestration(h.t.Context(), item, provider.Strong)
	if err != nil {
		h.t.Fatal(err)
	}
	events, _ := o.Events()
	last := events[len(events)-1].ID
	turn := &provider.Turn{
		InstanceID: in.InstanceID, Head: o.Head, Watermark: o.Head.Watermark, Before: o.State(history.TrackTimers),
		Events: []history.Event{{ID: last + 1, Kind: history.TurnStarted, Time: time.Now().UTC(), BuildID: "test"}},
	}
	for i, input := range []string{"1500", "1"} {
		turn.Events = append(turn.Events, history.Event{
			ID: last + 2 + int64(i), Kind: history.ActivityScheduled, Time: time.Now().UTC(), Name: "work",
			Queue: "default", Input: history.Payload(input), Inline: true,
		})
	}
	if _, err := p.AckOrchestrationItem(h.t.Context(), turn); err != nil {
		h.t.Fatal(err)
	}
}

// An inline activity continues to run during a commit and exceeds its time. It is sent once after the next commit, and
// the outcome of the worker counts.
func TestR20_activityExceedsItsTimeDuringACommit_isSentToItsQueue(t *testing.T) {
	t.Parallel()
	w, why := sleepingWork()
	withInlineWork(t, w, simhub.Options{}, shortAndLong(nil), func(_ context.Context, h *hub) {
		in := h.start("works", 30_000)
		began := time.Now()
		if end := h.finish(in); string(end.Output) != "30000" || end.Time.Sub(began) > 4*time.Second {
			t.Errorf("ended with %s %s after %v, want 30000 within 4s", end.String(), end.Output, end.Time.Sub(began))
		}
		w.wantRuns(t, 3, 1)
		if why.Load() != perdure.ReasonInvocationDeadline {
			t.Errorf("the activity was stopped with reason %v, want the invocation deadline", why.Load())
		}
		h.checkIdle()
	})
}

// An inline activity exceeds its time during a commit. The process crashes at each call, including the calls between
// the commit and the send to the queue. The redispatch sends the activity.
func TestR20_processDiesWhileATimedOutActivityIsSent_redispatchSendsIt(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			w, _ := sleepingWork()
			intercept, calls := simhub.CrashAt(n, after)
			o := simhub.Options{Intercept: intercept, Environments: 2}
			withInlineWork(t, w, o, shortAndLong(nil), func(_ context.Context, h *hub) {
				if end := h.finish(h.start("works", 30_000)); string(end.Output) != "30000" {
					t.Errorf("crash at call %d, after=%v: ended with %s %s, want 30000",
						n, after, end.String(), end.Output)
				}
				h.checkIdle()
			})
			if calls.Load() < n || t.Failed() {
				break
			}
		}
	}
}

// A pause takes effect before the code receives an inline outcome. The activity that still runs is sent to its queue,
// and its outcome is parked.
func TestR20_pauseWhileAnActivityRuns_outcomeIsParked(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
	withInlineWork(t, w, simhub.Options{}, shortAndLong(nil), func(ctx context.Context, h *hub) {
		in := h.start("works", 1500)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
		h.serveFor(time.Minute)
		if now := h.read(in); now.Status != provider.StatusPaused {
			t.Errorf("the instance is %s, want paused", now.Status)
		}
		w.wantRuns(t, 3, 1)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
		if end := h.finish(in); string(end.Output) != "1500" {
			t.Errorf("ended with %s %s, want 1500", end.String(), end.Output)
		}
		w.wantRuns(t, 3, 1)
		h.checkIdle()
	})
}

// A termination follows the trigger in the batch and belongs to the same turn. No inline activity of that turn starts.
func TestR20_terminationFollowsTheTrigger_runsNoActivity(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
	withInlineWork(t, w, simhub.Options{}, shortAndLong(nil), func(ctx context.Context, h *hub) {
		in := h.start("works", 1500)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID,
		}))
		began := time.Now()
		end := h.finish(in)
		if took := end.Time.Sub(began); end.Kind != history.OrchestrationTerminated || took > time.Second {
			t.Errorf("ended with %s after %v, want terminated within 1s", end.String(), took)
		}
		w.wantRuns(t, 0, 0)
		h.checkIdle()
	})
}

// The code blocks while an inline activity runs. The activity is sent to its queue once, and its outcome is parked.
func TestR20_codeBlocks_runningActivityIsSentToItsQueue(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
	hangs := shortAndLong(func(*perdure.OrchestrationContext) error {
		time.Sleep(time.Hour)
		return nil
	})
	withInlineWork(t, w, simhub.Options{TurnTimeout: 300 * time.Millisecond}, hangs, func(_ context.Context, h *hub) {
		in := h.start("works", 1500)
		h.serveFor(20 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s, want blocked", now.Status)
		}
		w.wantRuns(t, 3, 1)       // one run in a worker
		time.Sleep(5 * time.Hour) // the orchestrations return
	})
}

// An inline activity that is cancelled in the turn that schedules it does not start.
func TestR20_cancelledInTheSameTurn_doesNotRun(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, cancel := perdure.WithCancel(ctx)
		callWork(scope, 1)
		cancel()
		return callWork(ctx, 2).Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		h.finish(h.start("works", 0))
		w.wantRuns(t, 1, 0)
		h.checkIdle()
	})
}

// The decisions of a turn fill a commit. The inline outcomes are committed with the next turn.
func TestR20_decisionsFillACommit_outcomesAreInTheNextOne(t *testing.T) {
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
		end := h.finish(h.start("works", 40))
		if total := fmt.Sprint(56 * 190_000); string(end.Output) != total || ran.Load() != 40 {
			t.Errorf("ended with %s %s %v after %d runs, want %s after 40",
				end.String(), end.Output, end.Error, ran.Load(), total)
		}
		h.checkIdle()
	})
}

// A large turn is sent with a cursor, which marks all events up to a position as sent. No inline activity may therefore
// run during its commit.
func TestR20_largeTurn_noActivityRunsDuringItsCommit(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
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
	withInlineWork(t, w, simhub.Options{Intercept: crash}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 1500)
		h.serveFor(24 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusCompleted || !crashed.Load() {
			t.Errorf("the instance is %s, crashed: %v, want completed after a crash", now.Status, crashed.Load())
		}
	})
}

// writesCursor reports whether a call stores the cursor of a large dispatch.
func writesCursor(c simaws.Call) bool {
	for _, it := range itemsPut(c) {
		if strings.HasPrefix(text(it, "sk"), "o#") {
			return true
		}
	}
	return false
}

// The inline activities of ten instances in a batch run concurrently.
func TestR20_instancesOfABatch_runConcurrently(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
	one := func(ctx *perdure.OrchestrationContext, n int) (int, error) { return callWork(ctx, n).Await(ctx) }
	withInlineWork(t, w, simhub.Options{}, one, func(_ context.Context, h *hub) {
		for i := range 10 {
			h.startAs(fmt.Sprint("i-", i), "works", 1000)
		}
		began := time.Now()
		h.turn(0)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("ten instances took %v, want at most 1.1s", took)
		}
		w.wantRuns(t, 10, 0)
	})
}

// In a polling process, an inline activity ends before the lock of its messages expires, and leaves time for the
// commit.
func TestR20_pollingProcess_activityEndsBeforeTheMessageLock(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
	withInlineWork(t, w, simhub.Options{InlineTimeout: time.Minute}, nil, func(ctx context.Context, h *hub) {
		h.start("works", 20_000)
		w.code = func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, 20*time.Second) }
		records := h.receive(h.Provider.Config().InboxURL)
		locked := time.Now().Add(5 * time.Second)
		for i := range records {
			records[i].Hold = provider.NewHold(time.Now(), 5*time.Second)
		}
		if failed := h.Orchestrators[0].HandleRecords(ctx, records); len(failed) > 0 || time.Now().After(locked) {
			t.Errorf("got failed records %v, %v before the lock expires, want none in time", failed, time.Until(locked))
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("got %d work items, want 1", n)
		}
	})
}

// A query replays the instance and runs no inline activity.
func TestR20_query_runsNoActivity(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		must(0, perdure.SetQueryHandler(ctx, "at", func(int) (int, error) { return v, nil }))
		for range n {
			if v, err = callWork(ctx, v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, perdure.Sleep(ctx, time.Hour)
	}
	withInlineWork(t, w, simhub.Options{Environments: 2}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 4)
		h.serveFor(time.Minute)
		for _, o := range h.Orchestrators {
			if got, err := h.queryOn(o, "at", "0"); err != nil || got != "4" {
				t.Errorf("got %s, %v, want 4", got, err)
			}
		}
		w.wantRuns(t, 4, 0)
		h.finish(in)
	})
}

// letters returns 190 KB of text that hardly compresses.
func letters(seed int) string {
	rng, b := rand.New(rand.NewPCG(uint64(seed), 1)), make([]byte, 190_000)
	for i := range b {
		b[i] = 'a' + byte(rng.IntN(26))
	}
	return string(b)
}

// A turn that exceeds a commit runs again with fewer outcomes. An inline activity that runs during the commit is sent
// by a redispatch and is not lost.
func TestR20_turnExceedsACommitWhileAnActivityRuns_activityIsNotLost(t *testing.T) {
	t.Parallel()
	w, _ := sleepingWork()
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
			t.Errorf("the instance is %s, want completed", now.Status)
		}
		if _, outside := w.ran(); outside == 0 {
			t.Error("no activity was sent to its queue: the turn was not too large")
		}
	})
}
