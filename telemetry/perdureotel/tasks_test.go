package perdureotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/telemetry/perdureotel"
)

// waiting returns a registry with an orchestration that waits for a task of each kind.
func waiting() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "ship", func(*perdure.OrchestrationContext, int) (int, error) {
		return 0, errors.New("no truck")
	})
	perdure.AddOrchestration(r, "wait", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		perdure.SetUpdateHandler(ctx, "set", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			return n, nil
		})
		_ = perdure.WhenAll(ctx,
			perdure.CallSubOrchestrationByName[int](ctx, "ship", 1, perdure.WithInstanceID("shipment")),
			perdure.RaiseEvent(ctx, "missing", "word", 1), perdure.CallUpdate[int](ctx, "order-7", "set", 7))
		paid, window := perdure.WaitForExternalEvent[int](ctx, "paid"),
			perdure.CreateTimer(ctx, 3*time.Minute, perdure.WithTimerName("payment window"))
		_, err := perdure.Select(ctx, paid, window)
		return 0, err
	})
	return r
}

// waited runs the orchestration and returns its spans.
func waited(t *testing.T, opts ...perduretest.Option) tracetest.SpanStubs {
	t.Helper()
	tp, spans := recording()
	env := perduretest.New(t, waiting(),
		append(opts, perduretest.WithInterceptors(perdureotel.New(tp).Interceptor()))...)
	id, err := env.Client().Start(t.Context(), "wait", 1, client.WithInstanceID("order-7"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted {
		t.Fatalf("got %+v, error %v", s, err)
	}
	return spans.GetSpans()
}

// Each task that an instance awaits has a span from its start to its end in the history. The span is in the trace of
// the turn that started the task, and the turn that consumed the end has a link to the span.
func TestWaitSpans_ofEachKindOfTask_matchHistory(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]perduretest.Option{"warm": {perduretest.WithCache()}, "cold": nil} {
		all := waited(t, opts...)
		turns, ended := map[string]tracetest.SpanStub{}, map[trace.SpanID]string{}
		for _, s := range all {
			if a := attrs(s); s.Name == "turn wait" {
				turns[a["perdure.turn.sequence"]] = s
				for _, id := range links(s)["ended"] {
					ended[id] = a["perdure.turn.sequence"]
				}
			}
		}
		for span, want := range map[string]struct {
			begun         string
			took          time.Duration
			end, instance string
			reason, fails string
		}{
			"timer payment window":   {took: 3 * time.Minute, end: "completed"},
			"external event paid":    {took: 3 * time.Minute, end: "cancelled", reason: "select_loser"},
			"sub-orchestration ship": {begun: "1", end: "failed", instance: "shipment", fails: "no truck"},
			"sent event word": {
				begun: "1", end: "failed", instance: "missing", fails: `instance "missing" not found`,
			},
			"sent update set": {begun: "1", end: "completed", instance: "order-7"},
		} {
			s := named(t, all, span, 1)[0]
			a := attrs(s)
			parent := sequenceOf(turns, s.Parent.SpanID())
			if parent == "" || want.begun != "" && parent != want.begun ||
				s.SpanContext.TraceID() != turns[parent].SpanContext.TraceID() {
				t.Errorf("%s: parent of %s: got turn %q, want %s", name, span, parent, want.begun)
			}
			if got := s.EndTime.Sub(s.StartTime); want.took > 0 && got.Round(time.Second) != want.took {
				t.Errorf("%s: %s: got duration %v", name, span, got)
			}
			if a["perdure.task.end"] != want.end || a["perdure.task.instance.id"] != want.instance ||
				a["perdure.task.reason"] != want.reason || a["perdure.instance.id"] != "order-7" ||
				a["perdure.task.id"] == "" {
				t.Errorf("%s: %s: got attributes %v", name, span, a)
			}
			if failed := s.Status.Code == codes.Error; failed != (want.fails != "") ||
				s.Status.Description != want.fails || s.SpanKind != trace.SpanKindInternal {
				t.Errorf("%s: %s: got status %+v", name, span, s.Status)
			}
			if ended[s.SpanContext.SpanID()] != a["perdure.task.ended_in"] {
				t.Errorf("%s: %s: got end in turn %s and a link from turn %q", name, span, a["perdure.task.ended_in"],
					ended[s.SpanContext.SpanID()])
			}
		}
		for _, s := range all {
			if s.Name == "update set" || s.Name == "activity" {
				t.Errorf("%s: got span %s, want none", name, s.Name)
			}
		}
	}
}

func sequenceOf(turns map[string]tracetest.SpanStub, id trace.SpanID) string {
	for sequence, s := range turns {
		if s.SpanContext.SpanID() == id {
			return sequence
		}
	}
	return ""
}

// ended returns a turn that consumes the ends of n timers. A turn with the trace context started the timers.
func ended(n int, traceParent string) perdure.TurnTasks {
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	t := perdure.TurnTasks{InstanceID: "order-7", ExecutionID: "01J", Name: "wait", Sequence: 9}
	for i := range n {
		t.Ended = append(t.Ended, perdure.TaskInfo{
			ID: int64(i + 3), Kind: perdure.TaskTimer, ScheduledAt: at, ScheduledInTurn: 1, TraceParent: traceParent,
			EndedAt: at.Add(3 * time.Minute), Outcome: perdure.TaskCompleted,
		})
	}
	return t
}

// If another process reports the same tasks again, their spans have the same IDs, so a viewer shows one of each.
func TestWaitSpans_tasksAreReportedAgain_haveTheSameIDs(t *testing.T) {
	t.Parallel()
	var ids []trace.SpanContext
	for range 2 {
		tp, spans := recording()
		perdureotel.New(tp).Interceptor().OnTasks(t.Context(),
			ended(2, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
		for _, s := range spans.GetSpans() {
			if s.Parent.SpanID().String() != "00f067aa0ba902b7" ||
				s.SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" ||
				s.EndTime.Sub(s.StartTime) != 3*time.Minute || s.Name != "timer" {
				t.Errorf("got %+v", s)
			}
			ids = append(ids, s.SpanContext)
		}
	}
	if len(ids) != 4 || !ids[0].Equal(ids[2]) || !ids[1].Equal(ids[3]) || ids[0].Equal(ids[1]) {
		t.Errorf("got ids %v", ids)
	}
}

// Waits of an unsampled turn have no spans. Waits of an untraced turn have their own traces.
func TestWaitSpans_useSamplingDecisionOfTheirTurn(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]int{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00": 0,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": 1, "": 1,
	} {
		spans := tracetest.NewInMemoryExporter()
		tp := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(perdureotel.IDGenerator()),
			sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
		perdureotel.New(tp).Interceptor().OnTasks(t.Context(), ended(1, parent))
		all := spans.GetSpans()
		if len(all) != want || want == 1 && all[0].Parent.IsValid() != (parent != "") {
			t.Errorf("%q: got %+v", parent, all)
		}
	}
}

// A turn that ends a hundred thousand timers creates a limited number of spans, and reports the number of omitted
// spans.
func TestWaitSpans_hundredThousandTimersEnd_areLimited(t *testing.T) {
	t.Parallel()
	tp, spans := recording()
	i := perdureotel.New(tp).Interceptor()
	i.Turn(t.Context(), perdure.TurnInfo{InstanceID: "order-7", ExecutionID: "01J", Name: "wait", Sequence: 9},
		func(ctx context.Context) perdure.TurnResult {
			i.OnTasks(ctx, ended(100_000, ""))
			return perdure.TurnResult{Committed: true, Status: history.StatusRunning}
		})
	all := spans.GetSpans()
	turn := named(t, all, "turn wait", 1)[0]
	if n := len(named(t, all, "timer", 1000)); attrs(turn)["perdure.turn.waits_omitted"] != fmt.Sprint(100_000-n) ||
		len(links(turn)["ended"]) != 32 {
		t.Errorf("got %d spans, %v, %d links", n, attrs(turn), len(links(turn)["ended"]))
	}
}

// With WithoutTaskSpans the engine does not have to track open tasks.
func TestWithoutTaskSpans_setsNoOnTasks(t *testing.T) {
	t.Parallel()
	tp, _ := recording()
	if i := perdureotel.New(tp, perdureotel.WithoutTaskSpans()).Interceptor(); i.OnTasks != nil || i.Turn == nil {
		t.Error("the engine reports tasks to the interceptor")
	}
}
