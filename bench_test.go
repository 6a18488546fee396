package perdure_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func chain(ctx *perdure.OrchestrationContext, n int) (int, error) {
	v := 0
	for range n {
		var err error
		if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

func benchRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "chain", chain)
	perdure.AddOrchestration(r, "fan", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		fs := make([]perdure.Awaitable, n)
		for i := range fs {
			fs[i] = perdure.CallActivity(ctx, inc, i)
		}
		return n, perdure.WhenAll(ctx, fs...)
	})
	return r
}

// BenchmarkActivityLive runs one turn: it applies the result of an activity and schedules the next activity.
func BenchmarkActivityLive(b *testing.B) {
	w := newWorld(b, benchRegistry()).start("chain", 1<<40)
	b.ReportAllocs()
	for b.Loop() {
		out, err := w.instance.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{{
			{Kind: history.ActivityCompleted, SourceEventID: w.instance.LastEventID(), Result: history.Payload("1")},
		}}})
		if err != nil || len(out.Events) != 3 {
			b.Fatal(out, err)
		}
	}
}

// Replay is linear: ten times as many activities take ten times as long.
func BenchmarkReplayChain1000(b *testing.B)  { benchmarkReplay(b, "chain", 1_000) }
func BenchmarkReplayChain10000(b *testing.B) { benchmarkReplay(b, "chain", 10_000) }
func BenchmarkReplayChain50000(b *testing.B) { benchmarkReplay(b, "chain", 50_000) }
func BenchmarkReplayFan10000(b *testing.B)   { benchmarkReplay(b, "fan", 10_000) }

func benchmarkReplay(b *testing.B, name string, n int) {
	b.Helper()
	w := newWorld(b, benchRegistry()).start(name, n).run()
	w.end()
	b.ReportAllocs()
	for b.Loop() {
		x := replay.New(w.code, w.options)
		if err := x.Replay(w.history); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
	b.ReportMetric(float64(len(w.history))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
