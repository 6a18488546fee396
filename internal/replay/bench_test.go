package replay_test

import (
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// BenchmarkReplay replays a chain of 10,000 activities that decodes no results.
func BenchmarkReplay(b *testing.B) {
	const n = 10_000
	code := body(func(c *replay.Context) {
		for range n {
			c.Await(activity(c, "a"))
		}
	})
	x := instance(b, code)
	log := append([]history.Event{started}, turn(b, x)...)
	for range n {
		log = append(log, turn(b, x, done(x.LastEventID()))...)
	}
	b.ReportAllocs()
	for b.Loop() {
		y := replay.New(code, options)
		if err := y.Replay(log); err != nil || !y.Ended() {
			b.Fatal(err)
		}
		y.Close()
	}
	b.ReportMetric(float64(len(log))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkInstance makes an instance, suspends it and closes it.
func BenchmarkInstance(b *testing.B) {
	code := body(func(c *replay.Context) { c.Await(activity(c, "a")) })
	events := []history.Event{started}
	b.ReportAllocs()
	for b.Loop() {
		x := replay.New(code, options)
		if err := x.Replay(events); err != nil {
			b.Fatal(err)
		}
		if _, err := x.Turn(replay.Turn{Now: epoch}); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}
