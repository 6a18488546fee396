package dispatch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// countingRuns returns a registry whose orchestration "sleeper" counts its runs and then runs body.
func countingRuns(
	count *atomic.Int64, body func(ctx *perdure.OrchestrationContext, n int) (int, error),
) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		count.Add(1)
		return body(ctx, n)
	})
	return r
}

// awaits returns an orchestration that waits for a number of events, in order.
func awaits(events int, name string) func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for i := range events {
			n, err := perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			if n != i {
				return 0, fmt.Errorf("got event %d, want %d", n, i)
			}
		}
		return events, nil
	}
}

// block starts the orchestration "sleeper" in a build with the registry good. Then the hub's own build blocks it.
func (h *hub) block(good *perdure.Registry) provider.Instance {
	h.t.Helper()
	in := h.start("sleeper", 0)
	h.passRecords(h.orchestrator(good, "before"))
	h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
	for range 3 {
		h.turn(0)
		time.Sleep(10 * time.Minute)
	}
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("the instance is %s, want blocked", now.Status)
	}
	return in
}

// burst sends the events 0 to n-1.
func (h *hub) burst(in provider.Instance, n int) {
	h.t.Helper()
	for i := 0; i < n; i += 10 {
		var ms []provider.Message
		for j := i; j < min(i+10, n); j++ {
			ms = append(ms, provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: fmt.Sprint("e-", j),
				Data: encoded(h.t, j),
			})
		}
		h.send(ms...)
	}
}

// slow delays every call of a function by d.
func slow(d time.Duration) simaws.Interceptor {
	return func(_ context.Context, _ simaws.Call, next func() error) error {
		time.Sleep(d)
		return next()
	}
}

// Messages to a blocked instance are parked as fast as batches can be written. The session does not run the code or
// read the history again. After a fix, all events arrive once and in order.
func TestBlocked_manyEvents_areParkedWithoutTheCode(t *testing.T) {
	t.Parallel()
	const events = 1500
	var count atomic.Int64
	inBubble(t, simhub.Options{Registry: countingRuns(&count, awaits(events, "plus")), Concurrency: 1},
		func(ctx context.Context, h *hub) {
			in := h.block(countingRuns(new(atomic.Int64), awaits(events, "add")))
			before := count.Load()
			h.burst(in, events)
			var mu sync.Mutex
			var last time.Time
			from := time.Now()
			late := slow(10 * time.Millisecond)
			h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					last = time.Now()
				}()
				return late(ctx, c, next)
			})
			h.Cloud.ResetCounts()
			h.serveFor(time.Hour)
			h.interfere(nil)
			rate := events / last.Sub(from).Seconds()
			calls := h.Cloud.Counts()
			t.Logf("parked %d events in %v: %.0f events/s; calls %v", events, last.Sub(from), rate, calls)
			if rate < 200 {
				t.Errorf("got %.0f events/s, want at least 200", rate)
			}
			if n := count.Load() - before; n != 0 {
				t.Errorf("the code ran %d times, want 0", n)
			}
			if calls["DynamoDB.PutItem"] != events/10 || calls["DynamoDB.UpdateItem"] != 0 ||
				calls["DynamoDB.Query"] > 1 || calls["DynamoDB.GetItem"] > 1 {
				t.Errorf("got calls %v, want a write for each of %d batches, and one cold read", calls, events/10)
			}
			h.finishFixed(ctx, in, countingRuns(new(atomic.Int64), awaits(events, "add")), events)
		})
}

// finishFixed runs the instance in a fixed build, and fails the test unless it ends with the result want.
func (h *hub) finishFixed(ctx context.Context, in provider.Instance, r *perdure.Registry, want int) {
	h.t.Helper()
	time.Sleep(time.Second)
	fixed := h.orchestrator(r, "fixed")
	if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
		h.t.Fatalf("the sweeper woke %d instances, %v; want 1", woken, err)
	}
	h.passRecords(fixed)
	if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil ||
		string(end.Output) != fmt.Sprint(want) {
		h.t.Errorf("ended with %s %s %v, %v, want the result %d", end.Kind, end.Output, end.Error, err, want)
	}
	h.events(in)
}

// Code that never returns leaks a goroutine at each run. Messages to an instance that is blocked for this reason must
// not run it. This test is not parallel, because it counts goroutines.
func TestBlocked_codeNeverReturns_leaksNoGoroutines(t *testing.T) { //nolint:paralleltest // see above
	var count atomic.Int64
	r := countingRuns(&count, func(*perdure.OrchestrationContext, int) (int, error) {
		time.Sleep(1000 * time.Hour)
		return 0, nil
	})
	inBubble(t, simhub.Options{Registry: r, TurnTimeout: time.Second, Concurrency: 1}, func(_ context.Context, h *hub) {
		in := h.block(countingRuns(new(atomic.Int64), awaits(1, "add")))
		before, goroutines := count.Load(), runtime.NumGoroutine()
		for range 5 {
			h.burst(in, 200)
			h.serveFor(time.Hour) // a warm entry expires within this time
		}
		t.Logf("the code ran %d times with %d goroutines before, and %d times with %d goroutines after 1,000 events",
			before, goroutines, count.Load(), runtime.NumGoroutine())
		const few = 3 // started by libraries at their first use; each message would leak one
		if count.Load() != before || runtime.NumGoroutine() > goroutines+few {
			t.Errorf("got %d more runs of the code, and %d goroutines after %d",
				count.Load()-before, runtime.NumGoroutine(), goroutines)
		}
		time.Sleep(2000 * time.Hour) // the orchestrations return
	})
}

// A batch of messages to a blocked instance costs one write and no read.
func TestBlocked_batch_isOneWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(20, "plus")}, func(ctx context.Context, h *hub) {
		in := h.block(sleeper(20, "add"))
		h.burst(in, 20)
		h.turn(0) // warms the instance
		records := h.receive(h.Provider.Config().InboxURL)
		from := len(h.made())
		failed := h.Orchestrators[0].HandleRecords(ctx, records)
		if got := strings.Join(h.operations(from), " "); got != "PutItem" || len(records) != 10 || len(failed) > 0 {
			t.Errorf("got %d records, %d failed, calls %s; want 10 records, none failed, one PutItem",
				len(records), len(failed), got)
		}
	})
}

// The fixed code may not consume the parked message, or there may only be a wake. The instance is Running after a turn
// of its code has succeeded.
func TestBlocked_fixedBuildConsumesNothing_isRunning(t *testing.T) {
	t.Parallel()
	for name, parked := range map[string]provider.Message{
		"only a wake": {Kind: provider.MessageWake},
		"a duplicate event": {
			Kind: provider.MessageEventRaised, Name: "add", EventID: "first", Data: history.Payload("1"),
		},
		"message of another execution": {Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(3, "plus")}, func(ctx context.Context, h *hub) {
				in := h.start("sleeper", 0)
				before := h.orchestrator(sleeper(3, "add"), "before")
				h.passRecords(before)
				h.raise(in, "first", 1)
				h.passRecords(before)
				parked.InstanceID = in.InstanceID
				time.Sleep(time.Hour) // beyond the deduplication interval of the queue
				h.send(parked)
				for range 3 {
					h.turn(0)
					time.Sleep(10 * time.Minute)
				}
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Fatalf("the instance is %s, want blocked", now.Status)
				}
				fixed := h.orchestrator(sleeper(3, "add"), "fixed")
				if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
					t.Fatalf("the sweeper woke %d instances, %v; want 1", woken, err)
				}
				h.passRecords(fixed)
				if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
					t.Errorf("after the fix, the instance is %s with diagnosis %+v", now.Status, now.Diagnosis)
				}
				if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("after the fix, the sweeper woke %d instances, %v; want none", woken, err)
				}
				h.raise(in, "second", 2)
				h.raise(in, "third", 3)
				h.passRecords(fixed)
				if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil ||
					string(end.Output) != "6" {
					t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
				}
			})
		})
	}
}

// In a rollout, an environment of the old build releases a message twice before FailOnNondeterminism fails the
// instance. An environment of the new build can receive the message.
func TestFailOnNondeterminism_rollout_releasesTheMessageTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "plus", perdure.FailOnNondeterminism())},
		func(ctx context.Context, h *hub) {
			in := h.start("sleeper", 0)
			fresh := h.orchestrator(sleeper(2, "add", perdure.FailOnNondeterminism()), "new")
			h.passRecords(fresh)
			h.raise(in, "first", 1)
			h.raise(in, "second", 2)
			for n := range 2 {
				if failed := h.turn(0); len(failed) != 2 || h.read(in).Status != provider.StatusRunning {
					t.Fatalf("delivery %d: got %d failed messages, the instance is %s",
						n+1, len(failed), h.read(in).Status)
				}
				time.Sleep(10 * time.Minute)
			}
			h.passRecords(fresh)
			if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "3" {
				t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
			}
		})
}

// 1. In a rollout, a message is received twice without any result, for example because calls are throttled.
// 2. An environment of the old build receives the message. Its code differs from the decisions of the new build.
// 3. The number of deliveries does not prove a fault, so the session blocks the instance instead of failing it.
// 4. The old build only parks later messages, and the instance continues in the new build.
func TestR18_failOnNondeterminismInOldBuild_blocksInsteadOfFailing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(3, "plus", perdure.FailOnNondeterminism())},
		func(ctx context.Context, h *hub) {
			time.Sleep(time.Second)
			fresh := h.orchestrator(sleeper(3, "add", perdure.FailOnNondeterminism()), "new")
			in := h.start("sleeper", 0)
			h.passRecords(fresh)
			h.raise(in, "first", 1)
			for range 2 {
				h.receive(h.Provider.Config().InboxURL)
				time.Sleep(10 * time.Minute)
			}
			if failed := h.turn(0); len(failed) > 0 || h.read(in).Status != provider.StatusBlocked {
				t.Fatalf("got %d failed messages, the instance is %s; want none, blocked",
					len(failed), h.read(in).Status)
			}
			h.raise(in, "second", 2)
			if failed := h.turn(0); len(failed) > 0 || h.read(in).Status != provider.StatusBlocked {
				t.Fatalf("got %d failed messages, the instance is %s; want none, blocked",
					len(failed), h.read(in).Status)
			}
			if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
				t.Fatalf("the sweeper woke %d instances, %v; want 1", woken, err)
			}
			h.passRecords(fresh)
			h.raise(in, "third", 3)
			h.passRecords(fresh)
			if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "6" {
				t.Errorf("ended with %s %s %v, %v", end.Kind, end.Output, end.Error, err)
			}
		})
}

// A build that is deployed again counts as newer than the build that replaced it in between. With FailOnNondeterminism,
// it fails an instance whose history differs from its code.
func TestR18_buildIsDeployedAgain_countsAsNewer(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "plus", perdure.FailOnNondeterminism())},
		func(ctx context.Context, h *hub) {
			time.Sleep(time.Second)
			fresh := h.orchestrator(sleeper(2, "add", perdure.FailOnNondeterminism()), "new")
			in := h.start("sleeper", 0)
			h.passRecords(fresh)
			h.raise(in, "first", 1)
			time.Sleep(provider.BuildReportInterval)
			if err := h.Orchestrators[0].ReportBuild(ctx); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				h.turn(0)
				time.Sleep(10 * time.Minute)
			}
			if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil ||
				end.Kind != history.OrchestrationFailed {
				t.Errorf("ended with %s, %v; the instance is %s", end.Kind, err, h.read(in).Status)
			}
		})
}

//  1. Two builds whose code differs from the history of an instance are rolled out and rolled back, while events arrive
//     in environments of both.
//  2. Each build runs its code as often as for one blocking. The sweeper wakes the instance once per report and then
//     stops.
//  3. The fixed build receives all events, once and in order.
func TestBlocked_inBothBuildsOfARollback_continuesInTheFixedBuild(t *testing.T) {
	t.Parallel()
	const events = 120
	var a, b atomic.Int64
	inBubble(t, simhub.Options{Registry: countingRuns(&a, awaits(events, "plus"))}, func(ctx context.Context, h *hub) {
		in := h.block(countingRuns(new(atomic.Int64), awaits(events, "add")))
		time.Sleep(time.Second)
		second := h.orchestrator(countingRuns(&b, awaits(events, "times")), "second") // rollout
		both := []*dispatch.Orchestrator{h.Orchestrators[0], second}
		h.burst(in, events)
		for n := range 40 {
			h.passRecords(both[n%2])
			time.Sleep(6 * time.Minute)
		}
		tries := [2]int64{a.Load(), b.Load()}
		h.wantNoWakes(ctx, second, "the rollout")
		time.Sleep(time.Second)
		if err := h.Orchestrators[0].ReportBuild(ctx); err != nil { // rollback
			t.Fatal(err)
		}
		h.wantNoWakes(ctx, h.Orchestrators[0], "the rollback")
		t.Logf("the code of the first build ran %d times, of the second %d times", tries[0], tries[1])
		if a.Load() != tries[0] || b.Load() != tries[1] || tries[0] > 6 || tries[1] > 6 {
			t.Errorf("the code ran %v times, then %d and %d times", tries, a.Load(), b.Load())
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s, want blocked", now.Status)
		}
		h.finishFixed(ctx, in, countingRuns(new(atomic.Int64), awaits(events, "add")), events)
	})
}

// wantNoWakes sweeps and processes the wakes once. It fails the test if the next sweep wakes an instance, so there is
// no loop of wakes.
func (h *hub) wantNoWakes(ctx context.Context, o *dispatch.Orchestrator, after string) {
	h.t.Helper()
	if _, err := h.Renewer.Sweep(ctx); err != nil {
		h.t.Fatal(err)
	}
	for range 4 { // a build that has not yet run the instance needs three deliveries
		h.passRecords(o)
		time.Sleep(10 * time.Minute)
	}
	if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
		h.t.Errorf("after %s, the sweeper woke %d instances again, %v", after, woken, err)
	}
}

// A wake in the build that blocked the instance does not run the code or write anything.
func TestBlocked_wakeInTheSameBuild_runsAndWritesNothing(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	r := countingRuns(&count, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		done := make(chan struct{})
		go func() { defer close(done); perdure.WaitForExternalEvent[int](ctx, "add") }()
		<-done
		return 0, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		for range 3 {
			h.turn(0)
			time.Sleep(10 * time.Minute)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked ||
			now.Diagnosis.Type != history.TypeForeignGoroutine ||
			!strings.Contains(now.Diagnosis.Message, "TestBlocked_wakeInTheSameBuild_runsAndWritesNothing") {
			t.Fatalf("the instance is %s with diagnosis %+v, want a call from a foreign goroutine",
				now.Status, now.Diagnosis)
		}
		before := count.Load()
		for range 10 {
			if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
				t.Errorf("the sweeper woke %d instances, %v; want none", woken, err)
			}
			h.turn(0) // processes the sweeper's request for a report
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID})
			h.Cloud.ResetCounts()
			if failed := h.turn(0); len(failed) > 0 {
				t.Error("the wake failed")
			}
			if calls := h.Cloud.Counts(); calls["DynamoDB.PutItem"]+calls["DynamoDB.UpdateItem"] > 0 {
				t.Errorf("got calls %v of a wake, want no write", calls)
			}
			time.Sleep(time.Minute)
		}
		if count.Load() != before {
			t.Errorf("the code ran %d times, want 0", count.Load()-before)
		}
	})
}

// A build without a name may have other code after each start, as on a developer's machine. Its code runs once per
// process.
func TestBlocked_buildWithoutAName_runsOncePerProcess(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(countingRuns(&count, awaits(2, "plus")), "dev")
		h.raise(in, "first", 1)
		for range 3 {
			h.passRecords(broken)
			time.Sleep(10 * time.Minute)
		}
		tries := count.Load()
		h.raise(in, "second", 2)
		if failed := h.passRecords(broken); len(failed) > 0 || count.Load() != tries {
			t.Errorf("got %d failed messages and %d more runs, want none", len(failed), count.Load()-tries)
		}
		h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
		h.passRecords(h.orchestrator(sleeper(2, "add"), "dev"))
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "3" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}
