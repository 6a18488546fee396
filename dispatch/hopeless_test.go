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

// entered is a registry of the sleeper, whose code counts how often it was entered, before it does what body does.
func entered(count *atomic.Int64, body func(ctx *perdure.OrchestrationContext, n int) (int, error)) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		count.Add(1)
		return body(ctx, n)
	})
	return r
}

// awaits waits for as many events of a name, and wants the numbers from 0 on, in order.
func awaits(events int, name string) func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for i := range events {
			n, err := perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			if n != i {
				return 0, fmt.Errorf("event %d came where %d was due", n, i)
			}
		}
		return events, nil
	}
}

// block starts the sleeper in a build whose code is good, and has the hub's own build block it.
func (h *hub) block(good *perdure.Registry) provider.Instance {
	h.t.Helper()
	in := h.start("sleeper", 0)
	h.give(h.orchestrator(good, "before"))
	h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
	for range 3 {
		h.turn(0)
		time.Sleep(10 * time.Minute)
	}
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("the instance is %s", now.Status)
	}
	return in
}

// burst raises the events 0 to n-1.
func (h *hub) burst(in provider.Instance, n int) {
	h.t.Helper()
	for i := 0; i < n; i += 10 {
		var ms []provider.Message
		for j := i; j < min(i+10, n); j++ {
			ms = append(ms, provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: fmt.Sprint("e-", j), Data: encoded(h.t, j),
			})
		}
		h.send(ms...)
	}
}

// slow makes every call of a function take so long.
func slow(d time.Duration) simaws.Interceptor {
	return func(_ context.Context, _ simaws.Call, next func() error) error {
		time.Sleep(d)
		return next()
	}
}

// A burst to a blocked instance is set aside at the rate at which a batch can be written: its code is not run, its history is not
// read again, and all arrive once and in order when the code is mended.
func TestABlockedInstanceDrainsAThousandEventsWithoutItsCode(t *testing.T) {
	t.Parallel()
	const events = 1500
	var count atomic.Int64
	inBubble(t, simhub.Options{Registry: entered(&count, awaits(events, "plus")), Concurrency: 1}, func(ctx context.Context, h *hub) {
		in := h.block(entered(new(atomic.Int64), awaits(events, "add")))
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
		t.Logf("%d events in %v: %.0f events/s; calls %v", events, last.Sub(from), rate, calls)
		if rate < 200 {
			t.Errorf("%.0f events/s", rate)
		}
		if n := count.Load() - before; n != 0 {
			t.Errorf("its code was entered %d times", n)
		}
		if calls["DynamoDB.PutItem"] != events/10 || calls["DynamoDB.UpdateItem"] != 0 || calls["DynamoDB.Query"] > 1 || calls["DynamoDB.GetItem"] > 1 {
			t.Errorf("calls %v: want a write for each of %d batches, and one cold read", calls, events/10)
		}
		h.mend(ctx, in, entered(new(atomic.Int64), awaits(events, "add")), events)
	})
}

// mend has a build take the instance, and wants it to end with a number.
func (h *hub) mend(ctx context.Context, in provider.Instance, r *perdure.Registry, want int) {
	h.t.Helper()
	time.Sleep(time.Second)
	mended := h.orchestrator(r, "mended")
	if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
		h.t.Fatalf("the watch woke %d, %v", woken, err)
	}
	h.give(mended)
	if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != fmt.Sprint(want) {
		h.t.Errorf("ended with %s %s %v, %v", end.Kind, end.Output, end.Error, err)
	}
	h.events(in)
}

// Code that never comes back leaves a goroutine behind each time it is entered: messages to an instance that is blocked for that must
// not. Not parallel: the goroutines of other tests would count.
func TestABlockedInstanceLeaksNoGoroutines(t *testing.T) { //nolint:paralleltest // see above
	var count atomic.Int64
	r := entered(&count, func(*perdure.OrchestrationContext, int) (int, error) {
		time.Sleep(1000 * time.Hour)
		return 0, nil
	})
	inBubble(t, simhub.Options{Registry: r, TurnLimit: time.Second, Concurrency: 1}, func(_ context.Context, h *hub) {
		in := h.block(entered(new(atomic.Int64), awaits(1, "add")))
		before, goroutines := count.Load(), runtime.NumGoroutine()
		for range 5 {
			h.burst(in, 200)
			h.serveFor(time.Hour) // beyond the life of a warm entry, too
		}
		t.Logf("blocking entered the code %d times, %d goroutines; after 1,000 events %d times, %d goroutines", before, goroutines, count.Load(), runtime.NumGoroutine())
		const few = 3 // that libraries keep, and make when they are first needed; each message would leave one
		if count.Load() != before || runtime.NumGoroutine() > goroutines+few {
			t.Errorf("its code was entered %d times, %d goroutines became %d", count.Load()-before, goroutines, runtime.NumGoroutine())
		}
		time.Sleep(2000 * time.Hour) // the bubble waits for the bodies
	})
}

// A batch to a blocked instance costs one write, whatever the batch holds, and nothing is read.
func TestABatchToABlockedInstanceIsOneWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(20, "plus")}, func(ctx context.Context, h *hub) {
		in := h.block(sleeper(20, "add"))
		h.burst(in, 20)
		h.turn(0) // cold or warm: the wake's turn has left it
		records := h.receive(h.Provider.Config().InboxURL)
		from := len(h.made())
		failed := h.Orchestrators[0].HandleRecords(ctx, records)
		if got := strings.Join(h.operations(from), " "); got != "PutItem" || len(records) != 10 || len(failed) > 0 {
			t.Errorf("%d records, %d failed, calls: %s", len(records), len(failed), got)
		}
	})
}

// What was parked may not concern the mended code any more, or there may be nothing but the wake: the instance is Running all the
// same, once a turn of its code went well.
func TestAMendedInstanceIsNotBlockedThoughNothingWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, parked := range map[string]provider.Message{
		"a wake alone":        {Kind: provider.MessageWake},
		"a duplicate":         {Kind: provider.MessageEventRaised, Name: "add", EventID: "first", Data: history.Payload("1")},
		"another execution's": {Kind: provider.MessageTimerFired, ExecutionID: "x", TimerID: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(3, "plus")}, func(ctx context.Context, h *hub) {
				in := h.start("sleeper", 0)
				before := h.orchestrator(sleeper(3, "add"), "before")
				h.give(before)
				h.raise(in, "first", 1)
				h.give(before)
				parked.InstanceID = in.InstanceID
				time.Sleep(time.Hour) // the queue has forgotten what it would take for the same message
				h.send(parked)
				for range 3 {
					h.turn(0)
					time.Sleep(10 * time.Minute)
				}
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Fatalf("the instance is %s", now.Status)
				}
				mended := h.orchestrator(sleeper(3, "add"), "mended")
				if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
					t.Fatalf("the watch woke %d, %v", woken, err)
				}
				h.give(mended)
				if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
					t.Errorf("mended, it is %s: %+v", now.Status, now.Diagnosis)
				}
				if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("then the watch woke %d, %v", woken, err)
				}
				h.raise(in, "second", 2)
				h.raise(in, "third", 3)
				h.give(mended)
				if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "6" {
					t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
				}
			})
		})
	}
}

// FailOnNondeterminism is no more hasty than blocking: in a rollout an environment of the old build gives a message back, for one of
// the new build to take.
func TestFailOnNondeterminismLeavesARolloutItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "plus", perdure.FailOnNondeterminism())}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		fresh := h.orchestrator(sleeper(2, "add", perdure.FailOnNondeterminism()), "new")
		h.give(fresh)
		h.raise(in, "first", 1)
		h.raise(in, "second", 2)
		for n := range 2 {
			if failed := h.turn(0); len(failed) != 2 || h.read(in).Status != provider.StatusRunning {
				t.Fatalf("delivery %d: %d messages failed, the instance is %s", n+1, len(failed), h.read(in).Status)
			}
			time.Sleep(10 * time.Minute)
		}
		h.give(fresh)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "3" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// Interleaving: in a rollout a message is delivered twice, and nobody gets anywhere, as where calls are throttled; then an environment of the old build
// takes it, whose code parts from what the new one has decided. Deliveries prove nothing: it blocks the instance, takes no more of it, and the new build goes on.
func TestR18AnOldEnvironmentFailsNothingThatANewerBuildGoesOnWith(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(3, "plus", perdure.FailOnNondeterminism())}, func(ctx context.Context, h *hub) {
		time.Sleep(time.Second)
		fresh := h.orchestrator(sleeper(3, "add", perdure.FailOnNondeterminism()), "new")
		in := h.start("sleeper", 0)
		h.give(fresh)
		h.raise(in, "first", 1)
		for range 2 {
			h.receive(h.Provider.Config().InboxURL)
			time.Sleep(10 * time.Minute)
		}
		if failed := h.turn(0); len(failed) > 0 || h.read(in).Status != provider.StatusBlocked {
			t.Fatalf("%d messages failed, the instance is %s", len(failed), h.read(in).Status)
		}
		h.raise(in, "second", 2)
		if failed := h.turn(0); len(failed) > 0 || h.read(in).Status != provider.StatusBlocked {
			t.Fatalf("%d messages failed, the instance is %s", len(failed), h.read(in).Status)
		}
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Fatalf("the watch woke %d, %v", woken, err)
		}
		h.give(fresh)
		h.raise(in, "third", 3)
		h.give(fresh)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "6" {
			t.Errorf("ended with %s %s %v, %v", end.Kind, end.Output, end.Error, err)
		}
	})
}

// A build that was deployed again is not behind the one that it was turned back from, whichever reported first: its code fails what parts from it.
func TestR18ABuildThatIsDeployedAgainFailsWhatTheOtherHasDecided(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "plus", perdure.FailOnNondeterminism())}, func(ctx context.Context, h *hub) {
		time.Sleep(time.Second)
		fresh := h.orchestrator(sleeper(2, "add", perdure.FailOnNondeterminism()), "new")
		in := h.start("sleeper", 0)
		h.give(fresh)
		h.raise(in, "first", 1)
		time.Sleep(time.Second)
		if err := h.Orchestrators[0].ReportBuild(ctx); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			h.turn(0)
			time.Sleep(10 * time.Minute)
		}
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || end.Kind != history.OrchestrationFailed {
			t.Errorf("ended with %s, %v; the instance is %s", end.Kind, err, h.read(in).Status)
		}
	})
}

// Interleaving: a rollout and then a rollback, of two builds whose code parts from an instance's history, while events come and
// environments of both take them in turn. Each build tries its code as for one blocking; the watch asks a build that reports, hears,
// and is quiet; the build that mends it finds all events, once and in order.
func TestBlockedInBothBuildsOfARolloutAndARollback(t *testing.T) {
	t.Parallel()
	const events = 120
	var a, b atomic.Int64
	inBubble(t, simhub.Options{Registry: entered(&a, awaits(events, "plus"))}, func(ctx context.Context, h *hub) {
		in := h.block(entered(new(atomic.Int64), awaits(events, "add")))
		time.Sleep(time.Second)
		second := h.orchestrator(entered(&b, awaits(events, "times")), "second") // rolled out
		both := []*dispatch.Orchestrator{h.Orchestrators[0], second}
		h.burst(in, events)
		for n := range 40 {
			h.give(both[n%2])
			time.Sleep(6 * time.Minute)
		}
		tries := [2]int64{a.Load(), b.Load()}
		h.wantQuiet(ctx, second, "the rollout")
		time.Sleep(time.Second)
		if err := h.Orchestrators[0].ReportBuild(ctx); err != nil { // rolled back
			t.Fatal(err)
		}
		h.wantQuiet(ctx, h.Orchestrators[0], "the rollback")
		t.Logf("the first build's code was entered %d times, the second's %d", tries[0], tries[1])
		if a.Load() != tries[0] || b.Load() != tries[1] || tries[0] > 6 || tries[1] > 6 {
			t.Errorf("code entered %v times, then %d and %d", tries, a.Load(), b.Load())
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s", now.Status)
		}
		h.mend(ctx, in, entered(new(atomic.Int64), awaits(events, "add")), events)
	})
}

// wantQuiet has the watch wake what it will, once, and wants it to find nothing then: whatever environment takes a wake, there is no
// loop of wakes.
func (h *hub) wantQuiet(ctx context.Context, o *dispatch.Orchestrator, after string) {
	h.t.Helper()
	if _, err := h.Timekeeper.Sweep(ctx); err != nil {
		h.t.Fatal(err)
	}
	for range 4 { // a build that has not been asked tries three times
		h.give(o)
		time.Sleep(10 * time.Minute)
	}
	if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
		h.t.Errorf("after %s the watch wakes it again: %d, %v", after, woken, err)
	}
}

// Whatever wakes an instance in the build that it is blocked in, its code is not run for it, and nothing is written.
func TestAWakeInTheSameBuildRunsNothing(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	r := entered(&count, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
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
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeForeignGoroutine ||
			!strings.Contains(now.Diagnosis.Message, "TestAWakeInTheSameBuildRunsNothing") {
			t.Fatalf("the instance is %s: %+v", now.Status, now.Diagnosis)
		}
		before := count.Load()
		for range 10 {
			if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
				t.Errorf("the watch woke %d, %v", woken, err)
			}
			h.turn(0) // which the watch has asked for a report
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID})
			h.Cloud.ResetCounts()
			if failed := h.turn(0); len(failed) > 0 {
				t.Error("a wake failed")
			}
			if calls := h.Cloud.Counts(); calls["DynamoDB.PutItem"]+calls["DynamoDB.UpdateItem"] > 0 {
				t.Errorf("a wake makes calls %v", calls)
			}
			time.Sleep(time.Minute)
		}
		if count.Load() != before {
			t.Errorf("its code was entered %d times", count.Load()-before)
		}
	})
}

// A build without a name may be other code each time its process starts, as on a developer's machine: it is tried once a process.
func TestABuildWithoutANameIsTriedOnceAProcess(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(entered(&count, awaits(2, "plus")), "dev")
		h.raise(in, "first", 1)
		for range 3 {
			h.give(broken)
			time.Sleep(10 * time.Minute)
		}
		tries := count.Load()
		h.raise(in, "second", 2)
		if failed := h.give(broken); len(failed) > 0 || count.Load() != tries {
			t.Errorf("%d failed, %d more tries", len(failed), count.Load()-tries)
		}
		h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
		h.give(h.orchestrator(sleeper(2, "add"), "dev"))
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "3" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}
