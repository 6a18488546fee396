package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
)

// addInline adds orchestrations that call inline activities.
func addInline(r *perdure.Registry) {
	perdure.AddActivity(r, "step", func(_ context.Context, n int) (int, error) { return n + 1, nil }, perdure.Inline())
	// The input of "link" is the result of another activity.
	perdure.AddActivity(r, "link", func(_ context.Context, n int) (int, error) { return n + 1, nil }, perdure.Inline())
	perdure.AddOrchestration(r, "inline-chain", func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = perdure.CallActivityByName[int](ctx, "link", v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
	perdure.AddOrchestration(r, "inline-fan", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, perdure.CallActivity(ctx, inc, i, perdure.Inline()))
		}
		return sumOf(ctx, fs)
	})
	perdure.AddActivity(r, "sleepy", func(ctx context.Context, d time.Duration) (time.Duration, error) {
		select {
		case <-time.After(d):
			return d, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}, perdure.Inline())
	perdure.AddOrchestration(r, "inline-race",
		func(ctx *perdure.OrchestrationContext, ds []time.Duration) (int, error) {
			var racers []perdure.Awaitable
			for _, d := range ds {
				racers = append(racers, perdure.CallActivityByName[time.Duration](ctx, "sleepy", d))
			}
			if _, err := perdure.Select(ctx, racers...); err != nil {
				return 0, err
			}
			return perdure.CallActivity(ctx, inc, len(ds)-1).Await(ctx) // one more turn, through a queue
		})
	perdure.AddOrchestration(r, "inline-mixed", func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = perdure.CallActivityByName[int](ctx, "link", v).Await(ctx); err != nil {
				return 0, err
			}
			if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
	perdure.AddOrchestration(r, "inline-again", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if _, err := perdure.CallActivityByName[int](ctx, "step", n).Await(ctx); err != nil || n == 0 {
			return "done", err
		}
		return perdure.ContinueAsNew[string](ctx, n-1)
	})
	perdure.AddOrchestration(r, "inline-medley", mixedInline)
}

// mixedInline combines inline activities with all other outputs of a turn. It continues as new n times.
func mixedInline(ctx *perdure.OrchestrationContext, n int) (string, error) {
	link := func(v int) (int, error) { return perdure.CallActivityByName[int](ctx, "link", v).Await(ctx) }
	ctx.SetCustomStatus("begun")
	lost := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx, 1)
	v, err := link(100 * n)
	if err != nil {
		return "", err
	}
	scope, cancel := perdure.WithCancel(ctx)
	perdure.CallActivity(scope, inc, 1000)
	perdure.CreateTimer(scope, time.Hour)
	if v, err = link(v); err != nil {
		return "", err
	}
	cancel() // cancels an activity in its queue, and a timer that was committed with a later inline outcome
	if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
		return "", err
	}
	ctx.SetCustomStatus("half")
	sent := perdure.RaiseEvent(ctx, "missing", "add", 1)
	child := perdure.CallSubOrchestrationByName[int](ctx, "inline-mixed", 1)
	if v, err = link(v); err != nil {
		return "", err
	}
	if _, err = child.Await(ctx); err != nil {
		return "", err
	}
	if _, err = lost.Await(ctx); err == nil {
		return "", errors.New("an activity on a missing queue completed")
	}
	if _, err = sent.Await(ctx); err == nil {
		return "", errors.New("an event to a missing instance was delivered")
	}
	ctx.SetCustomStatus("done")
	if v, err = link(v); err != nil || n == 0 {
		return fmt.Sprint("at ", v), err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}

// A chain of n inline activities costs n writes of history and no message.
func TestCost_inlineChainOfTen(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("inline-chain", 10)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "10" {
			t.Fatalf("ended with %s", end.String())
		}
		want := map[string]int64{
			"DynamoDB.PutItem":    10, // the ten steps; the last includes the end
			"DynamoDB.UpdateItem": 1,  // Completed
			"DynamoDB.GetItem":    1,  // the test reads the instance
			"DynamoDB.Query":      3,  // the first turn, the poll before the first step, and the end read by the test
		}
		h.wantCalls(want)
	})
}

func TestInline_awaitedTogether_isOneCommit(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("inline-fan", 5)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "15" {
			t.Fatalf("ended with %s %s", end.String(), end.Output)
		}
		if got := h.Cloud.Counts(); got["DynamoDB.PutItem"] != 1 || got["SQS.SendMessageBatch"] != 0 {
			t.Errorf("got calls %v, want one commit and no send", got)
		}
		wantHistory(t, h.events(in), "OrchestrationStarted", "TurnStarted",
			"ActivityScheduled", "ActivityScheduled", "ActivityScheduled", "ActivityScheduled", "ActivityScheduled",
			"ActivityCompleted", "ActivityCompleted", "ActivityCompleted", "ActivityCompleted", "ActivityCompleted",
			"TurnStarted", "OrchestrationCompleted")
	})
}

// wantHistory fails the test unless the events have the kinds want.
func wantHistory(t *testing.T, events []history.Event, want ...history.Kind) {
	t.Helper()
	var got []history.Kind
	for i := range events {
		got = append(got, events[i].Kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// The first outcome of a race is committed at once, and the turn that consumes it ends the context of the other
// activity.
func TestInline_losesARace_contextEndsInTheSameTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		began := time.Now()
		in := h.start("inline-race", []time.Duration{time.Second, 100 * time.Millisecond})
		h.serveFor(300 * time.Millisecond)
		events := h.events(in)
		wantHistory(t, events, "OrchestrationStarted", "TurnStarted", "ActivityScheduled", "ActivityScheduled",
			"ActivityCompleted",
			"TurnStarted", "ActivityCancelRequested", "ActivityScheduled", "TurnStarted", "ActivityCompleted",
			"OrchestrationCompleted")
		if e := events[4]; e.SourceEventID != 4 || !e.Inline || e.Time.Sub(began) > 200*time.Millisecond {
			t.Errorf("got %s, inline %v, after %v; want the inline outcome of #4 within 200ms",
				e.String(), e.Inline, e.Time.Sub(began))
		}
		h.finish(in)
		h.checkIdle()
	})
}

// An inline activity that exceeds its time is stopped and sent to its queue once.
func TestInline_exceedsItsTime_isSentToItsQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		began := time.Now()
		in := h.start("inline-race", []time.Duration{5 * time.Second})
		end := h.finish(in)
		took := end.Time.Sub(began)
		if end.Kind != history.OrchestrationCompleted || took < 7*time.Second || took > 8*time.Second {
			t.Errorf("ended with %s %s after %v, want a completion after 7s to 8s", end.String(), end.Output, took)
		}
		if e := h.events(in)[4]; e.Kind != history.ActivityCompleted || e.Inline || e.Attempt != 1 {
			t.Errorf("got outcome %+v, want the first attempt of a worker", e)
		}
		h.checkIdle()
	})
}
