package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// updating is the input of an orchestration whose update handlers call activities.
type updating struct {
	Events    int  // events that it waits for
	Continues bool // continue as new after each event and its open handlers
	Sum       int
}

// addition is the input of an update: the numbers of activities, each of which adds one.
type addition struct {
	Inline, Queued int
	Refuse         bool
}

// updatesWhile returns the sum of the results of its updates until its events have arrived.
func updatesWhile(ctx *perdure.OrchestrationContext, u updating) (int, error) {
	err := perdure.SetUpdateHandler(ctx, "change", func(ctx *perdure.OrchestrationContext, s addition) (int, error) {
		v := 0
		for n := range s.Inline + s.Queued {
			var opts []perdure.ActivityCallOption
			if n < s.Inline {
				opts = append(opts, perdure.Inline())
			}
			var err error
			if v, err = perdure.CallActivityByName[int](ctx, "inc", v, opts...).Await(ctx); err != nil {
				return 0, err
			}
		}
		u.Sum += v
		return v, nil
	}, perdure.WithValidator(func(s addition) error {
		if s.Refuse {
			return errChange
		}
		return nil
	}))
	for ; err == nil && u.Events > 0; u.Events-- {
		if _, err = perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		if err = perdure.AwaitUpdateHandlers(ctx); err == nil && u.Continues && u.Events > 1 {
			u.Events--
			return perdure.ContinueAsNew[int](ctx, u)
		}
	}
	return u.Sum, err
}

// updatedMeanwhile updates an instance that waits for two events. Some updates are rejected, and some are sent twice.
func updatedMeanwhile(h *hub, in provider.Instance) {
	change := func(id string, s addition) { h.send(updateMessage(in, id, encoded(h.t, s))) }
	change("u1", addition{Inline: 2})
	change("u2", addition{Queued: 1, Inline: 1})
	change("u3", addition{Refuse: true})
	h.serveFor(10 * time.Minute) // beyond the deduplication interval of SQS
	change("u1", addition{Inline: 7})
	h.raise(in, "e1", 1)
	change("u4", addition{Inline: 1})
	h.serveFor(10 * time.Minute)
	change("u3", addition{Inline: 7})
	change("u4", addition{Inline: 7})
	h.raise(in, "e2", 2)
}

// A handler runs inline activities in the invocation that accepts its update, without a worker. Handlers of one batch
// run their inline activities concurrently.
func TestR27_handler_runsInlineActivities(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("updates", updating{Events: 1})
		h.turn(0)
		for n := range 3 {
			h.send(updateMessage(in, fmt.Sprint("u", n), encoded(t, addition{Inline: n + 1})))
		}
		h.turn(0)
		for n := range 3 {
			h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateCompleted, fmt.Sprint(n+1))
		}
		h.wantReplays(registry(), in)
		h.raise(in, "e1", 1)
		if end := h.finish(in); string(end.Output) != "6" {
			t.Errorf("ended with %s, output %s, want 6", end.String(), end.Output)
		}
		h.checkIdle()
	})
}

// The inline activity of a handler kills its process once. The repeated turn accepts the update once.
func TestR27_inlineActivityKillsItsProcess_updateIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			simhub.Die(ctx)
		}
		return n + 1, nil
	})
	perdure.AddOrchestration(r, "updates", updatesWhile)
	inBubble(t, simhub.Options{Registry: r, Intercept: crashable}, func(_ context.Context, h *hub) {
		in := h.start("updates", updating{Events: 1})
		h.serveFor(time.Minute)
		h.send(updateMessage(in, "u1", encoded(t, addition{Inline: 1})))
		h.serveFor(time.Hour)
		h.wantUpdated(in, "u1", provider.UpdateCompleted, "1")
		if n := countKinds(h.events(in), history.UpdateAccepted); n != 1 {
			t.Errorf("got %d accepted updates, want 1", n)
		}
		h.raise(in, "e1", 1)
		h.finish(in)
		h.checkIdle()
	})
}

// The code draws the random numbers of a validator again, even if it holds the source. A replay does not call the
// validator.
func TestR27_validatorDrawsRandomNumbers_codeDrawsTheSame(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "changes", func(ctx *perdure.OrchestrationContext, _ changing) (string, error) {
		numbers := ctx.Rand()
		err := perdure.SetUpdateHandler(ctx, "change", func(
			ctx *perdure.OrchestrationContext, c change,
		) (string, error) {
			perdure.CreateTimer(ctx, time.Hour+time.Duration(numbers.IntN(1<<20))*time.Second)
			perdure.WaitForExternalEvent[int](ctx, "of "+ctx.NewUUID())
			return "done", nil
		}, perdure.WithValidator(func(c change) error {
			if ctx.Rand().Uint64() == 0 || numbers.Uint32() == 0 && c.Refuse == "" || ctx.NewUUID() == "" {
				return errChange
			}
			return nil
		}))
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "add").Await(ctx)
	})
	changes(t, simhub.Options{Registry: r}, changing{}, func(_ context.Context, h *hub, in provider.Instance) {
		for n := range 3 {
			h.update(in, fmt.Sprint("u", n), change{})
			h.turn(0)
			h.wantUpdated(in, fmt.Sprint("u", n), provider.UpdateCompleted, `"done"`)
		}
		h.wantReplays(r, in)
	})
}
