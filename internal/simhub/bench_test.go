package simhub_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// fan calls inc n times concurrently.
func fan(ctx *perdure.OrchestrationContext, n int) (int, error) {
	fs := make([]perdure.Awaitable, n)
	for i := range fs {
		fs[i] = perdure.CallActivity(ctx, inc, i)
	}
	return n, perdure.WhenAll(ctx, fs...)
}

// serving returns a hub whose functions run in real time, with the garbage collector settings of a deployed function.
func serving(b *testing.B) *simhub.Hub {
	b.Helper()
	return servingWith(b, simhub.Options{})
}

func servingWith(b *testing.B, o simhub.Options) *simhub.Hub {
	b.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "fan", fan)
	perdure.AddOrchestration(r, "chain", chain)
	perdure.AddOrchestration(r, "inline-chain", func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = perdure.CallActivity(ctx, inc, v, perdure.Inline()).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
	o.Registry, o.Concurrency = r, 16
	h, err := simhub.New(o)
	if err != nil {
		b.Fatal(err)
	}
	percent := debug.SetGCPercent(800)
	ctx, stop := context.WithCancel(b.Context())
	served := make(chan struct{})
	go func() { defer close(served); h.Cloud.Serve(ctx) }()
	b.Cleanup(func() {
		stop()
		<-served
		h.Close()
		debug.SetGCPercent(percent)
	})
	b.ReportAllocs()
	return h
}

// orchestrate starts an instance and waits for its end.
func orchestrate(b *testing.B, h *simhub.Hub, id, name string, n int) {
	b.Helper()
	s := provider.Start{InstanceID: id, Name: name, Input: history.Payload(strconv.Itoa(n)), StartID: id}
	if _, err := h.Provider.StartOrchestration(b.Context(), s); err != nil {
		b.Error(err)
		return
	}
	for {
		in, err := h.Provider.ReadInstance(b.Context(), id)
		switch {
		case err != nil:
			b.Error(err)
			return
		case in.Status == provider.StatusCompleted:
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// BenchmarkFanOf5 runs twenty concurrent orchestrations, each with five parallel activities that do nothing.
func BenchmarkFanOf5(b *testing.B) { fans(b, serving(b)) }

func fans(b *testing.B, h *simhub.Hub) {
	b.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	before := processorTime(b)
	b.ResetTimer()
	for range 20 {
		clients.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				orchestrate(b, h, fmt.Sprintf("i-%d", n), "fan", 5)
			}
		})
	}
	clients.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orchestrations/s")
	// Processor time does not depend on the number of cores.
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChainOf1600 runs one orchestration with 1,600 sequential activities.
func BenchmarkChainOf1600(b *testing.B) { single(b, "chain", 1600) }

// BenchmarkInlineChain runs one orchestration with 1,600 sequential inline activities. An invocation runs a thousand of
// them.
func BenchmarkInlineChain(b *testing.B) { single(b, "inline-chain", 1600) }

// BenchmarkFanOf1000 runs one orchestration with 1,000 concurrent activities.
func BenchmarkFanOf1000(b *testing.B) { single(b, "fan", 1000) }

func single(b *testing.B, name string, n int) {
	b.Helper()
	h := serving(b)
	b.ResetTimer()
	for i := range b.N {
		orchestrate(b, h, fmt.Sprintf("i-%d", i), name, n)
	}
}

// BenchmarkBlockedBurst sends a burst of events to a blocked instance. The events are parked, and the code does not
// run.
func BenchmarkBlockedBurst(b *testing.B) {
	r := perdure.NewRegistry()
	h, err := simhub.New(simhub.Options{Registry: r, Concurrency: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	const id = "blocked"
	if err := h.Provider.PutBuild(b.Context(),
		provider.Build{ID: "other", Orchestrations: map[string][]string{"unknown": {"1"}}}); err != nil {
		b.Fatal(err)
	}
	if _, err := h.Provider.StartOrchestration(b.Context(),
		provider.Start{InstanceID: id, Name: "unknown", StartID: id}); err != nil {
		b.Fatal(err)
	}
	h.ServeFor(b.Context(), 8*time.Second) // three deliveries
	for n := range b.N {
		if n%10 == 0 {
			raise(b, h, id, n, min(n+10, b.N))
		}
	}
	b.ResetTimer()
	for taken := 0; taken < b.N; {
		for !h.Cloud.Step() {
			<-h.Cloud.Changed()
		}
		for h.Cloud.InFlight() > 0 {
			<-h.Cloud.Changed()
		}
		taken += 10
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// raise raises the events of a range of numbers.
func raise(b *testing.B, h *simhub.Hub, instanceID string, from, to int) {
	b.Helper()
	var ms []provider.Message
	for n := from; n < to; n++ {
		ms = append(ms, provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: instanceID, Name: "add", EventID: strconv.Itoa(n),
			Data: history.Payload("1"),
		})
	}
	if err := h.Provider.EnqueueForOrchestrator(b.Context(), ms...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFanOf5Observed runs BenchmarkFanOf5 with telemetry. It reports the number and the bytes of the log records.
func BenchmarkFanOf5Observed(b *testing.B) {
	passes := perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			next(ctx)
		},
		Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
			next(ctx)
		},
	}
	for name, o := range map[string]simhub.Options{
		"interceptors": {Interceptors: []perdure.Interceptor{passes}},
		"tasks":        {Interceptors: []perdure.Interceptor{{OnTasks: func(context.Context, perdure.TurnTasks) {}}}},
		"metrics":      {Metrics: dispatch.MetricsByHub},
	} {
		b.Run(name, func(b *testing.B) {
			var logged counter
			o.Logger = slog.New(slog.NewJSONHandler(&logged, nil))
			h := servingWith(b, o)
			fans(b, h)
			b.ReportMetric(float64(logged.Load())/float64(b.N), "log-B/op")
		})
	}
}

// counter counts written bytes.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}
