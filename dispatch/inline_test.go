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

// addInline adds orchestrations that use inline activities, in the shapes that the protocol must carry.
func addInline(r *perdure.Registry) {
	perdure.AddActivity(r, "step", func(_ context.Context, n int) (int, error) { return n + 1, nil }, perdure.Inline())
	perdure.AddActivity(r, "link", func(_ context.Context, n int) (int, error) { return n + 1, nil }, perdure.Inline()) // its input is what another has returned
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
	perdure.AddOrchestration(r, "inline-race", func(ctx *perdure.OrchestrationContext, ds []time.Duration) (int, error) {
		var racers []perdure.Awaitable
		for _, d := range ds {
			racers = append(racers, perdure.CallActivityByName[time.Duration](ctx, "sleepy", d))
		}
		if _, err := perdure.Select(ctx, racers...); err != nil {
			return 0, err
		}
		return perdure.CallActivity(ctx, inc, len(ds)-1).Await(ctx) // a turn behind, by a queue
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
	perdure.AddOrchestration(r, "inline-medley", medley)
}

// medley has all that a turn can cause beside inline activities, and behind their outcomes. It begins anew n times.
func medley(ctx *perdure.OrchestrationContext, n int) (string, error) {
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
	cancel() // what was sent, and what another step was committed with
	if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
		return "", err
	}
	ctx.SetCustomStatus("half")
	told := perdure.RaiseEvent(ctx, "nobody", "add", 1)
	child := perdure.CallSubOrchestrationByName[int](ctx, "inline-mixed", 1)
	if v, err = link(v); err != nil {
		return "", err
	}
	if _, err = child.Await(ctx); err != nil {
		return "", err
	}
	if _, err = lost.Await(ctx); err == nil {
		return "", errors.New("it was sent to nowhere")
	}
	if _, err = told.Await(ctx); err == nil {
		return "", errors.New("nobody has heard it")
	}
	ctx.SetCustomStatus("done")
	if v, err = link(v); err != nil || n == 0 {
		return fmt.Sprint("at ", v), err
	}
	return perdure.ContinueAsNew[string](ctx, n-1)
}

// A chain of n inline activities is n writes of history, and no message goes through a queue.
func TestWhatAnInlineChainOfTenCosts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("inline-chain", 10)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "10" {
			t.Fatalf("ended with %s", end.String())
		}
		want := map[string]int64{
			"DynamoDB.PutItem":    10, // the ten steps: the last with the end
			"DynamoDB.UpdateItem": 1,  // Completed
			"DynamoDB.GetItem":    1,  // the test's own, of the instance
			"DynamoDB.Query":      3,  // the cold read of the first turn; the look before the first step; and the test's own, of the end
		}
		h.wantCalls(want)
	})
}

func TestInlineActivitiesThatAreAwaitedTogetherAreOneCommit(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("inline-fan", 5)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "15" {
			t.Fatalf("ended with %s %s", end.String(), end.Output)
		}
		if got := h.Cloud.Counts(); got["DynamoDB.PutItem"] != 1 || got["SQS.SendMessageBatch"] != 0 {
			t.Errorf("calls %v: want one commit, and nothing sent", got)
		}
		wantHistory(t, h.events(in),
			"OrchestrationStarted", "TurnStarted", "ActivityScheduled", "ActivityScheduled", "ActivityScheduled", "ActivityScheduled", "ActivityScheduled",
			"ActivityCompleted", "ActivityCompleted", "ActivityCompleted", "ActivityCompleted", "ActivityCompleted", "TurnStarted", "OrchestrationCompleted")
	})
}

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

// The first of a race is committed when it is there, and the other's context ends in the turn that takes it.
func TestALosersContextEndsInTheTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		began := time.Now()
		in := h.start("inline-race", []time.Duration{time.Second, 100 * time.Millisecond})
		h.serveFor(300 * time.Millisecond)
		events := h.events(in)
		wantHistory(t, events, "OrchestrationStarted", "TurnStarted", "ActivityScheduled", "ActivityScheduled", "ActivityCompleted",
			"TurnStarted", "ActivityCancelRequested", "ActivityScheduled", "TurnStarted", "ActivityCompleted", "OrchestrationCompleted")
		if e := events[4]; e.SourceEventID != 4 || !e.Inline || e.Time.Sub(began) > 200*time.Millisecond {
			t.Errorf("%s, inline %v, after %v", e.String(), e.Inline, e.Time.Sub(began))
		}
		h.finish(in)
		h.checkRest()
	})
}

// What overruns is stopped, and its queue has it from then on: once.
func TestAnInlineActivityThatOverrunsIsSentToItsQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		began := time.Now()
		in := h.start("inline-race", []time.Duration{5 * time.Second})
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || end.Time.Sub(began) < 7*time.Second || end.Time.Sub(began) > 8*time.Second {
			t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
		}
		if e := h.events(in)[4]; e.Kind != history.ActivityCompleted || e.Inline || e.Attempt != 1 {
			t.Errorf("%+v", e)
		}
		h.checkRest()
	})
}
