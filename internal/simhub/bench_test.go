package simhub_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func fan(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var fs []*perdure.Future[int]
	for i := range n {
		fs = append(fs, perdure.CallActivity(ctx, inc, i))
	}
	return n, perdure.WhenAll(ctx, perdure.Awaitables(fs)...)
}

func chainOnly(ctx *perdure.OrchestrationContext, n int) (int, error) {
	v := 0
	for range n {
		var err error
		if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

func hub(tb testing.TB) *simhub.Hub {
	tb.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "fan", fan)
	perdure.AddOrchestration(r, "chain", chainOnly)
	h, err := simhub.New(simhub.Options{Registry: r, Concurrency: 16})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(tb.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Cloud.Serve(ctx) }()
	tb.Cleanup(func() { stop(); <-done; h.Close() })
	return h
}

func wait(tb testing.TB, h *simhub.Hub, id string) {
	tb.Helper()
	for {
		in, err := h.Provider.ReadInstance(tb.Context(), id)
		if err != nil {
			tb.Fatal(err)
		}
		if in.Status.Terminal() {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func BenchmarkFan5(b *testing.B) {
	h := hub(b)
	b.ReportAllocs()
	const clients = 20
	work := make(chan int)
	done := make(chan bool)
	for range clients {
		go func() {
			for i := range work {
				id := fmt.Sprintf("i-%d", i)
				if _, err := h.Provider.StartOrchestration(b.Context(), provider.Start{InstanceID: id, Name: "fan", Input: history.Payload("5"), StartID: id}); err != nil {
					b.Error(err)
				}
				wait(b, h, id)
			}
			done <- true
		}()
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	for range clients {
		<-done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orch/s")
}

func benchChain(b *testing.B, n int) {
	b.Helper()
	h := hub(b)
	for i := range b.N {
		id := fmt.Sprintf("i-%d", i)
		if _, err := h.Provider.StartOrchestration(b.Context(), provider.Start{InstanceID: id, Name: "chain", Input: history.Payload(strconv.Itoa(n)), StartID: id}); err != nil {
			b.Error(err)
		}
		wait(b, h, id)
	}
	b.Log(h.Cloud.Counts())
}

func BenchmarkChain1600(b *testing.B) { benchChain(b, 1600) }
func BenchmarkFan1000(b *testing.B) {
	h := hub(b)
	for i := range b.N {
		id := fmt.Sprintf("i-%d", i)
		h.Provider.StartOrchestration(b.Context(), provider.Start{InstanceID: id, Name: "fan", Input: history.Payload("1000"), StartID: id})
		wait(b, h, id)
	}
}
