package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Callers that use the same ID concurrently receive one result: the result of the first message.
func TestR27_concurrentCallersWithOneID_shareOneResult(t *testing.T) {
	t.Parallel()
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1},
		func(ctx context.Context, h *hub, in provider.Instance) {
			const callers = 5
			results := make(chan string, callers)
			for n := range callers {
				go func() {
					got, err := client.New(h.Provider).Update(ctx, in.InstanceID, "change",
						change{Say: fmt.Sprint("s", n)}, client.WithUpdateID("u1"))
					results <- fmt.Sprint(string(got), err)
				}()
			}
			h.serveFor(time.Minute)
			first := <-results
			if !strings.HasPrefix(first, `"s`) {
				t.Errorf("got %s", first)
			}
			for range callers - 1 {
				if got := <-results; got != first {
					t.Errorf("got different results %s and %s", first, got)
				}
			}
			if n := countKinds(h.events(in), history.UpdateAccepted); n != 1 {
				t.Errorf("got %d accepted updates, want 1", n)
			}
			h.raise(in, "e1", 1)
			h.finish(in)
			h.checkIdle()
		})
}

// A delayed start stores ten updates, so that its first turn can process all of them. Further updates are rejected,
// regardless of the validator.
func TestR27_delayedStart_storesTenUpdates(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: addChanging(registry())}, func(ctx context.Context, h *hub) {
		in := must(h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "changes", Input: encoded(t, changing{Events: 1}), StartID: "start-1",
			StartAt: time.Now().Add(time.Hour),
		}))
		longText := static(1, 190<<10)
		for n := range 12 {
			h.update(in, fmt.Sprint("u", n), change{Say: longText})
		}
		h.serveFor(time.Minute)
		h.wantUpdated(in, "u10", provider.UpdateRejected, history.RejectedLimit)
		h.wantUpdated(in, "u11", provider.UpdateRejected, history.RejectedLimit)
		time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first copy
		h.update(in, "u3", change{Say: "a copy"})
		h.serveFor(time.Minute)
		h.wantNoResult(in, "u3")
		h.serveFor(2 * time.Hour)
		h.wantUpdated(in, "u0", provider.UpdateCompleted, longText)
		h.raise(in, "e1", 1)
		h.finish(in)
		h.checkIdle()
	})
}

// An instance is cancelled while a handler awaits an activity. The activity is cancelled, and the handler's return
// value is the result.
func TestR27_cancelledWhileHandlerAwaitsActivity_handlerReturnsItsResult(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(
			ctx *perdure.OrchestrationContext, _ change,
		) (string, error) {
			_, err := perdure.CallActivity(ctx, inc, 1).Await(ctx)
			if _, cancelled := errors.AsType[*perdure.CancelledError](err); cancelled {
				return "undone", nil
			}
			return "done", err
		})
		if err != nil {
			return "", err
		}
		_, err = perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		return "", errors.Join(err, perdure.AwaitUpdateHandlers(perdure.WithoutCancel(ctx)))
	})
	changes(t, simhub.Options{Registry: r, Environments: 2}, changing{},
		func(_ context.Context, h *hub, in provider.Instance) {
			h.update(in, "u1", change{})
			h.turn(0) // the activity waits for a worker
			h.wantNoResult(in, "u1")
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", RequestedBy: "client",
			})
			if end := h.finish(in); end.Kind != history.OrchestrationCancelled {
				t.Errorf("ended with %s: %+v, want cancelled", end.String(), end.Error)
			}
			h.wantUpdated(in, "u1", provider.UpdateCompleted, `"undone"`)
			h.wantReplays(r, in)
			h.checkIdle()
		})
}

// A thousand handlers may run concurrently, and further updates are rejected. The end of the instance aborts all open
// updates.
func TestR27_thousandHandlersRun_furtherUpdatesAreRejected(t *testing.T) {
	t.Parallel()
	const most = 1000
	changes(t, simhub.Options{Environments: 2}, changing{Events: 1},
		func(_ context.Context, h *hub, in provider.Instance) {
			for n := range most + 2 {
				h.update(in, fmt.Sprint("u", n), change{Say: "a", Wait: "go"})
			}
			h.serveFor(10 * time.Minute)
			h.wantNoResult(in, fmt.Sprint("u", most-1))
			h.wantUpdated(in, fmt.Sprint("u", most), provider.UpdateRejected, history.RejectedLimit)
			h.wantUpdated(in, fmt.Sprint("u", most+1), provider.UpdateRejected, history.RejectedLimit)
			h.raise(in, "e1", 1)
			h.finish(in)
			for _, n := range []int{0, 499, most - 1} {
				h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateAborted,
					history.TerminalReason(history.OrchestrationCompleted))
			}
			h.checkIdle()
		})
}

// Ten thousand updates of one execution are processed once and have a result, and a purge deletes all results.
func TestR27_tenThousandUpdates_areProcessedOnce(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	const many = 10_000
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		n := 0
		err := perdure.SetUpdateHandler(ctx, "change", func(*perdure.OrchestrationContext, change) (int, error) {
			n++
			return n, nil
		})
		if err != nil {
			return "", err
		}
		_, err = perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		return fmt.Sprint(n), err
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(ctx context.Context, h *hub, in provider.Instance) {
		for n := range many {
			h.update(in, fmt.Sprint("u", n), change{})
		}
		h.serveFor(time.Hour)
		for _, n := range []int{0, 1, many / 2, many - 1} {
			h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateCompleted, fmt.Sprint(n+1))
		}
		if n := countKinds(h.events(in), history.UpdateCompleted); n != many {
			t.Errorf("got %d completed updates, want %d", n, many)
		}
		h.update(in, "u7", change{})
		h.raise(in, "e1", 1)
		if end := h.finish(in); string(end.Output) != fmt.Sprintf(`"%d"`, many) {
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
		if n := h.storedResults(in.InstanceID); n == 0 {
			t.Error("got no results")
		}
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, false); err != nil {
			t.Fatal(err)
		}
		if n := h.storedResults(in.InstanceID); n != 0 {
			t.Errorf("got %d results, want 0", n)
		}
	})
}
