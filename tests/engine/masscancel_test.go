package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
)

// Ten thousand activities of one instance run or are queued when the instance is cancelled. Each running activity
// observes the cancel within the poll interval of one second. Afterwards orchestrations need no more calls than before,
// nothing is polled, renewed or sent for the ended instance, and no message remains.
func TestCancel_tenThousandRunningActivities_throughputRecovers(t *testing.T) {
	shortrun.Skip(t)
	const many, concurrency = 10_000, 900 // batches of ten: the last thousand are still queued
	var decided time.Time
	observed, last := 0, time.Duration(0)
	observations := make(chan time.Time, many)
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	perdure.AddActivity(r, "stand-by", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		observations <- time.Now()
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "fan", fanOut("inc"))
	perdure.AddOrchestration(r, "stand-by", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		n, err := fanOut("stand-by")(ctx, n)
		// the instance must still run when the outcomes arrive
		return n, errors.Join(err, perdure.Sleep(perdure.WithoutCancel(ctx), 30*time.Second))
	})
	synctest.Test(t, func(t *testing.T) {
		h, err := simhub.New(simhub.Options{Registry: r, Concurrency: concurrency})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() { defer close(served); h.Cloud.Serve(ctx) }()
		c := client.New(h.Provider)
		burst(t, h, c, "warm-up")
		cpu, calls := burst(t, h, c, "before")
		if _, err := c.Start(t.Context(), "stand-by", many, client.WithInstanceID("mass")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := c.Cancel(t.Context(), "mass", "that will do"); err != nil {
			t.Fatal(err)
		}
		decided = time.Now()
		used := processorTime(t)
		h.Cloud.ResetCounts()
		time.Sleep(time.Minute)
		cancelCPU := processorTime(t) - used
		cancelCalls := sum(h.Cloud.Counts())
		close(observations)
		for at := range observations {
			observed++
			last = max(last, at.Sub(decided))
		}
		if s, err := c.Status(t.Context(), "mass"); err != nil || s.Status != client.StatusCancelled {
			t.Errorf("got status %s, error %v", s.Status, err)
		}
		h.Cloud.ResetCounts()
		time.Sleep(time.Hour)
		if rest := h.Cloud.Counts(); len(rest) > 0 {
			t.Errorf("got calls %v in the hour after the cancellation", rest)
		}
		cpuAfter, callsAfter := burst(t, h, c, "after")
		t.Logf("%d activities were cancelled, %d of them running: observed within %v, in %v of processor time and %d "+
			"calls; orchestrations of five activities a second of a processor: %.0f before, %.0f after; calls for "+
			"each: %.1f, %.1f",
			many, observed, last, cancelCPU.Round(time.Millisecond), cancelCalls, bursts/cpu.Seconds(),
			bursts/cpuAfter.Seconds(), float64(calls)/bursts, float64(callsAfter)/bursts)
		if stopped, never := ends(t, c); stopped != observed || stopped+never != many || never == 0 ||
			last > time.Second {
			t.Errorf("got %d activities with a cancellation, the last after %v; %d stopped and %d never started, want "+
				"%d, and each within a second", observed, last, stopped, never, many)
		}
		if callsAfter > calls*101/100 {
			t.Errorf("got %d calls for %d orchestrations, %d before the cancellation", callsAfter, bursts, calls)
		}
		stop()
		<-served
		if err := h.CheckIdle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// ends returns the number of activities that stopped because of the cancel, and the number that never started.
func ends(t *testing.T, c *client.Client) (stopped, never int) {
	t.Helper()
	found, err := client.Collect(c.Cancellations(t.Context(), "mass", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range found {
		switch x.End {
		case client.OutcomeStopped:
			stopped++
		case client.OutcomeNeverStarted:
			never++
		}
	}
	return stopped, never
}

// fanOut calls an activity n times at once.
func fanOut(activity string) func(*perdure.OrchestrationContext, int) (int, error) {
	return func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		fs := make([]perdure.Awaitable, n)
		for i := range fs {
			fs[i] = perdure.CallActivityByName[int](ctx, activity, i)
		}
		return n, perdure.WhenAll(ctx, fs...)
	}
}

// bursts is the number of orchestrations in a burst.
const bursts = 300

// burst runs orchestrations of five activities, and returns their processor time and number of calls.
func burst(t *testing.T, h *simhub.Hub, c *client.Client, name string) (cpu time.Duration, calls int64) {
	t.Helper()
	h.Cloud.ResetCounts()
	used := processorTime(t)
	for n := range bursts {
		if _, err := c.Start(t.Context(), "fan", 5, client.WithInstanceID(fmt.Sprintf("%s-%d", name, n))); err != nil {
			t.Fatal(err)
		}
		// one after another, so that the batches of messages do not vary
		time.Sleep(100 * time.Millisecond)
	}
	cpu, calls = processorTime(t)-used, sum(h.Cloud.Counts())
	for n := range bursts {
		if s, err := c.Status(t.Context(), fmt.Sprintf("%s-%d", name, n)); err != nil ||
			s.Status != client.StatusCompleted {
			t.Fatalf("%s: got %s, error %v", name, s.Status, err)
		}
	}
	return cpu, calls
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}
