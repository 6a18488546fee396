package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving:
//  1. SQS rejects an output, and the process crashes before it records the failure.
//  2. The message becomes a dead letter, and is recovered after the resume.
//  3. Its batch refers to the output, so the session records the failure before it acknowledges the message.
func TestR25_outputRejectedDuringResume_isRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		commits := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" {
				if commits++; commits > 1 {
					return simhub.ErrFailed
				}
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("got %d failed messages, want the wake", len(failed))
		}
		h.interfere(nil)
		time.Sleep(10 * time.Minute)
		h.emptyInbox()
		h.pause(in, "p1")
		h.turn(0)
		h.wantPaused(in)

		h.resume(in, "r1")
		h.send(provider.Message{
			Kind: provider.MessageWake, InstanceID: in.InstanceID, Redrive: &provider.Redrive{Record: "lost", Times: 1},
		})
		h.turn(0)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, want completed", end.String())
		}
		h.checkRest()
	})
}

// The messages of a paused or blocked instance exceed one commit, so the session parks them in parts. One part contains
// no input. The session also parks the inputs after that part.
func TestR18_partWithoutInputs_laterInputsAreParked(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprintf("paused=%t", paused), func(t *testing.T) {
			t.Parallel()
			o := simhub.Options{Registry: sleeper(1, "add")}
			if !paused {
				o.Registry = sleeper(1, "plus")
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				var in provider.Instance
				if paused {
					in = h.start("sleeper", 0)
					h.turn(0)
					h.pause(in, "p1")
					h.turn(0)
				} else {
					in = h.block(sleeper(1, "add"))
				}

				const large = 900 << 10
				for n := range int64(4) {
					h.send(provider.Message{
						Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other",
						Data: encoded(t, static(n, large)),
					})
				}
				for range 5 { // of a past execution
					h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: "past"})
				}
				h.raise(in, "e1", 7)
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("got %d failed messages, want 0", len(failed))
				}

				if parked := history.NewState(0, h.events(in)...).Parked; parked != 5 {
					t.Errorf("got %d parked inputs, want 5", parked)
				}
			})
		})
	}
}

// A delayed start is paused and resumed before its start time, and its timer is lost. The sweeper finds the instance
// when it is due, like any pending instance (R11).
func TestR25_pausedDelayedStart_sweeperWakesItWhenDue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const delay = 30 * 24 * time.Hour
		in := must(h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "s", StartAt: time.Now().Add(delay),
		}))
		time.Sleep(15 * time.Minute)
		h.loseAll()
		h.wantWoken(0, "after a quarter of an hour")
		h.pause(in, "p1")
		h.turn(0)
		h.wantPaused(in)
		time.Sleep(2 * time.Hour)
		h.wantWoken(0, "while it is paused")
		h.resume(in, "r1")
		h.turn(0)
		h.wantStatus(in, provider.StatusPending)

		time.Sleep(delay - 3*time.Hour)
		h.wantWoken(0, "before it is due")
		time.Sleep(3 * time.Hour)
		h.wantWoken(1, "when it is due")
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
	})
}

// Parked inputs of a paused instance are not a turn and have no turn latency, even if a turn precedes them in the same
// batch.
func TestR25_parkedInputs_areNotMeasuredAsATurn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := simhub.Options{
		Registry: sleeper(3, "add"), Metrics: dispatch.MetricsByHub,
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	inBubble(t, o, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.raise(in, "e0", 1)
		h.pause(in, "p1")
		h.raise(in, "e1", 2)
		h.turn(0)
		h.wantPaused(in)
	})
	if n := sums(t, metricLines(t, log.String()))["TurnLatency"]; n != 1 {
		t.Errorf("got %d measured turns, want 1", n)
	}
}
