package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// ranging is a registry whose orchestration calls an activity for each key, in an order: of a map it would be another each time.
func ranging(keys ...string) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "echo", func(_ context.Context, key string) (string, error) { return key, nil })
	perdure.AddOrchestration(r, "ranging", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		var all []*perdure.Future[string]
		for _, k := range keys {
			all = append(all, perdure.CallActivityByName[string](ctx, "echo", k))
		}
		said := ""
		for _, f := range all {
			v, err := f.Await(ctx)
			if err != nil {
				return "", err
			}
			said += v
		}
		return said, nil
	})
	return r
}

// work runs what waits in the queue of activities.
func (h *hub) work(r *perdure.Registry) {
	h.t.Helper()
	if failed := h.activities(r).HandleRecords(h.t.Context(), h.receive("sim://default")); len(failed) > 0 {
		h.t.Errorf("%d activities were not done", len(failed))
	}
}

// A loop over a map gives the same calls other inputs each time it is replayed: some keys would be used twice, others never.
func TestALoopOverAMapIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: ranging("a", "b", "c")}, func(ctx context.Context, h *hub) {
		in := h.start("ranging", 0)
		h.give(h.orchestrator(ranging("a", "b", "c"), "one"))
		h.work(ranging())
		for range 3 {
			h.give(h.orchestrator(ranging("a", "c", "b"), "one")) // another process of the build, in which nothing is warm
			time.Sleep(10 * time.Minute)
		}
		now := h.read(in)
		if d := now.Diagnosis; now.Status != provider.StatusBlocked || d == nil || d.Type != history.TypeNondeterminism || d.EventID != 4 ||
			d.Expected != `ActivityScheduled "echo" with the input "b"` || d.Got != `ActivityScheduled "echo" with the input "c"` {
			t.Fatalf("the instance is %s: %+v", now.Status, d)
		}
		time.Sleep(time.Second)
		h.give(h.orchestrator(ranging("a", "b", "c"), "two"))
		if _, err := h.Timekeeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		h.give(h.orchestrator(ranging("a", "b", "c"), "two"))
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != `"abc"` {
			t.Errorf("mended, it ended with %s, %v", end.Output, err)
		}
	})
}

// A deployment may change what an activity is given. What was decided before stands, and the log says so.
func TestAnotherBuildMayChangeAnInput(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: ranging("a", "b")}, func(ctx context.Context, h *hub) {
		in := h.start("ranging", 0)
		h.give(h.orchestrator(ranging("a", "b"), "one"))
		h.work(ranging())
		var log bytes.Buffer
		next := must(dispatch.NewOrchestrator(ranging("a", "B"), h.Provider, &dispatch.OrchestratorOptions{BuildID: "two", Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		defer next.Close()
		h.give(next)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != `"ab"` {
			t.Errorf("it ended with %s, %v, want what was decided before", end.Output, err)
		}
		for _, want := range []string{"level=WARN", "instance=" + in.InstanceID, "build=two", "inputs=1", `history has ActivityScheduled \"echo\" with the input \"b\"`} {
			if !strings.Contains(strings.ReplaceAll(log.String(), `\\\"`, `\"`), want) {
				t.Errorf("the log lacks %s:\n%s", want, log.String())
			}
		}
	})
}

// What an activity fails with may hold what logs must not: a setting keeps it out, and history has it all the same.
func TestErrorTextsAreKeptOutOfTheLog(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) { return 0, errors.New("card 4242 was refused") })
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "charge", n, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2})).Await(ctx)
	})
	for omit, want := range map[bool]string{true: `error="of type error"`, false: `error="card 4242 was refused"`} {
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			in := h.start("order", 0)
			h.turn(0)
			var log bytes.Buffer
			w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{OmitErrorTexts: omit, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			if failed := w.HandleRecords(h.t.Context(), h.receive("sim://default")); len(failed) > 0 || !strings.Contains(log.String(), want) {
				t.Errorf("omitted %v: %d failed, the log lacks %s:\n%s", omit, len(failed), want, log.String())
			}
			if strings.Contains(log.String(), "4242") == omit {
				t.Errorf("omitted %v:\n%s", omit, log.String())
			}
			if end := h.finish(in); end.Error == nil || !strings.Contains(end.Error.Message, "4242") {
				t.Errorf("history has %+v", end.Error)
			}
		})
	}
}
