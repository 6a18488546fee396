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

// orderedCalls returns a registry whose orchestration calls an activity for each key in the given order. A loop over a
// map would have a different order in each replay.
func orderedCalls(keys ...string) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "echo", func(_ context.Context, key string) (string, error) { return key, nil })
	perdure.AddOrchestration(r, "ranging", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		var all []*perdure.Future[string]
		for _, k := range keys {
			all = append(all, perdure.CallActivityByName[string](ctx, "echo", k))
		}
		outputs := ""
		for _, f := range all {
			v, err := f.Await(ctx)
			if err != nil {
				return "", err
			}
			outputs += v
		}
		return outputs, nil
	})
	return r
}

// work runs the activities in the default work queue.
func (h *hub) work(r *perdure.Registry) {
	h.t.Helper()
	if failed := h.activities(r).HandleRecords(h.t.Context(), h.receive("sim://default")); len(failed) > 0 {
		h.t.Errorf("got %d failed activities, want 0", len(failed))
	}
}

// A loop over a map has a different order in each replay, so the same calls get other inputs. Some keys would be used
// twice, and others never.
func TestNondeterminism_loopOverMap_blocksWithDiagnosis(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: orderedCalls("a", "b", "c")}, func(ctx context.Context, h *hub) {
		in := h.start("ranging", 0)
		h.passRecords(h.orchestrator(orderedCalls("a", "b", "c"), "one"))
		h.work(orderedCalls())
		for range 3 {
			// another process of the same build, without a warm instance
			h.passRecords(h.orchestrator(orderedCalls("a", "c", "b"), "one"))
			time.Sleep(10 * time.Minute)
		}
		now := h.read(in)
		if d := now.Diagnosis; now.Status != provider.StatusBlocked || d == nil ||
			d.Type != history.TypeNondeterminism || d.EventID != 4 ||
			d.Expected != `ActivityScheduled "echo" with the input "b"` ||
			d.Got != `ActivityScheduled "echo" with the input "c"` {
			t.Fatalf("got status %s and diagnosis %+v, want Blocked with the inputs of event 4", now.Status, d)
		}
		time.Sleep(time.Second)
		h.passRecords(h.orchestrator(orderedCalls("a", "b", "c"), "two"))
		if _, err := h.Renewer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		h.passRecords(h.orchestrator(orderedCalls("a", "b", "c"), "two"))
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != `"abc"` {
			t.Errorf("after the fix: got output %s, error %v, want abc", end.Output, err)
		}
	})
}

// A new build may change the input of an activity. The recorded decision does not change, and the log contains a
// warning.
func TestNondeterminism_inputChangesInNewBuild_logsWarning(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: orderedCalls("a", "b")}, func(ctx context.Context, h *hub) {
		in := h.start("ranging", 0)
		h.passRecords(h.orchestrator(orderedCalls("a", "b"), "one"))
		h.work(orderedCalls())
		var log bytes.Buffer
		next := must(dispatch.NewOrchestrator(orderedCalls("a", "B"), h.Provider, &dispatch.OrchestratorOptions{
			BuildID: "two", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}))
		defer next.Close()
		h.passRecords(next)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != `"ab"` {
			t.Errorf("got output %s, error %v, want the output of the recorded inputs", end.Output, err)
		}
		for _, want := range []string{
			"level=WARN", "instance=" + in.InstanceID, "build=two", "inputs=1",
			`history has ActivityScheduled \"echo\" with the input \"b\"`,
		} {
			if !strings.Contains(strings.ReplaceAll(log.String(), `\\\"`, `\"`), want) {
				t.Errorf("the log lacks %s:\n%s", want, log.String())
			}
		}
	})
}

// An error text may contain data that must not be logged. OmitErrorTexts removes the text from the log, but not from
// history.
func TestWorkerLog_omitErrorTexts_hidesErrorText(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) {
		return 0, errors.New("card 4242 was refused")
	})
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "charge", n,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2})).Await(ctx)
	})
	for omit, want := range map[bool]string{true: `error="of type error"`, false: `error="card 4242 was refused"`} {
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			in := h.start("order", 0)
			h.turn(0)
			var log bytes.Buffer
			w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{
				OmitErrorTexts: omit, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}))
			if failed := w.HandleRecords(h.t.Context(), h.receive("sim://default")); len(failed) > 0 ||
				!strings.Contains(log.String(), want) {
				t.Errorf("OmitErrorTexts=%v: got %d failed records; log lacks %s:\n%s",
					omit, len(failed), want, log.String())
			}
			if strings.Contains(log.String(), "4242") == omit {
				t.Errorf("OmitErrorTexts=%v: log contains the wrong form of the error text:\n%s", omit, log.String())
			}
			if end := h.finish(in); end.Error == nil || !strings.Contains(end.Error.Message, "4242") {
				t.Errorf("got error %+v in history, want the full error text", end.Error)
			}
		})
	}
}
