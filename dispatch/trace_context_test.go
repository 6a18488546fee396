package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// testTraceParent returns the n-th trace context of a test.
func testTraceParent(n int64) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

// traceRecorder records the trace contexts of activities by their input.
type traceRecorder struct {
	mu   sync.Mutex
	seen map[string][]string
}

// registry returns a registry with an orchestration that calls an activity that fails once, and starts a child with the
// same code.
func (v *traceRecorder) registry() *perdure.Registry {
	v.seen = map[string][]string{}
	r := registry()
	perdure.AddActivity(r, "look", func(ctx context.Context, where string) (int, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen[where] = append(v.seen[where], perdure.TraceParentFrom(ctx))
		if len(v.seen[where]) == 1 {
			return 0, errors.New("look again")
		}
		return 0, nil
	})
	callProbe := func(ctx *perdure.OrchestrationContext, where string) error {
		_, err := perdure.CallActivityByName[int](ctx, "look", where,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})).Await(ctx)
		return err
	}
	perdure.AddOrchestration(r, "stage", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return 0, callProbe(ctx, "child")
	})
	perdure.AddOrchestration(r, "journey", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if err := callProbe(ctx, fmt.Sprint("parent ", n)); err != nil || n == 0 {
			return 0, err
		}
		if _, err := perdure.CallSubOrchestrationByName[int](ctx, "stage", 0).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, 0)
	})
	return r
}

// startTraced starts the orchestration "journey" with a trace context.
func (h *hub) startTraced(n int, trace string) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{
		InstanceID: "i-1", Name: "journey", Input: encoded(h.t, n), StartID: "start-1",
		TraceParent: history.ParseTraceParent(trace),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// current returns the current state of an instance.
func (h *hub) current(in provider.Instance) provider.Instance {
	h.t.Helper()
	now, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// Without interceptors, the trace context of a start applies to attempts, children, and the next execution.
func TestTraceContext_withoutInterceptors_reachesAllWork(t *testing.T) {
	t.Parallel()
	var v traceRecorder
	inBubble(t, simhub.Options{Registry: v.registry()}, func(_ context.Context, h *hub) {
		in := h.startTraced(1, testTraceParent(7))
		h.serveFor(time.Hour)
		two := []string{testTraceParent(7), testTraceParent(7)}
		if diff := cmp.Diff(map[string][]string{"parent 1": two, "child": two, "parent 0": two}, v.seen); diff != "" {
			t.Errorf("contexts (-want +got):\n%s", diff)
		}
		if now := h.current(in); now.Status != provider.StatusCompleted || now.ExecutionNumber != 2 {
			t.Errorf("got %+v, want Completed in execution 2", now)
		}
		h.checkIdle()
	})
	inBubble(t, simhub.Options{Registry: v.registry()}, func(_ context.Context, h *hub) {
		in := h.startTraced(0, "")
		h.finish(in)
		if got := v.seen["parent 0"]; !slices.Equal(got, []string{"", ""}) {
			t.Errorf("without a trace context: got %q", got)
		}
		for _, e := range h.events(in) {
			if b, _ := json.Marshal(e); strings.Contains(string(b), "traceparent") {
				t.Errorf("without a trace context: history has %s", b)
			}
		}
	})
}

// fresh returns an interceptor that sets another trace context for each turn, starting with the 101st, like a tracer
// that generates IDs.
func fresh() (perdure.Interceptor, *atomic.Int64) {
	n := &atomic.Int64{}
	n.Store(100)
	return perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			next(perdure.WithTraceParent(ctx, testTraceParent(n.Add(1))))
		},
	}, n
}

// An interceptor's trace context replaces the trace context of the start. Each attempt has the trace context of the
// turn that scheduled the activity, from history. Without a cache, each turn is replayed in another context, and no
// decision depends on the context.
func TestTraceContext_ofTurn_appliesToScheduledWork(t *testing.T) {
	t.Parallel()
	var v traceRecorder
	i, _ := fresh()
	inBubble(t, simhub.Options{
		Registry: v.registry(), Interceptors: []perdure.Interceptor{i}, CacheBytes: -1,
	}, func(_ context.Context, h *hub) {
		in := h.startTraced(0, testTraceParent(7))
		h.finish(in)
		var turns []string
		for _, e := range h.events(in) {
			switch e.Kind {
			case history.OrchestrationStarted:
				if e.TraceParent != history.TraceParent(testTraceParent(7)) {
					t.Errorf("start: got trace context %q", e.TraceParent)
				}
			case history.TurnStarted:
				turns = append(turns, string(e.TraceParent))
			default:
				if e.TraceParent != "" {
					t.Errorf("%s: got trace context %q", e.String(), e.TraceParent)
				}
			}
		}
		if len(turns) != 2 || turns[0] != testTraceParent(101) || turns[0] == turns[1] ||
			!slices.Equal(v.seen["parent 0"], []string{turns[0], turns[0]}) {
			t.Errorf("got turns %q, activity %q", turns, v.seen["parent 0"])
		}
	})
}

// The next execution starts in the trace context of the turn that continued as new.
func TestTraceContext_continueAsNew_keepsContextOfLastTurn(t *testing.T) {
	t.Parallel()
	var v traceRecorder
	i, _ := fresh()
	inBubble(t, simhub.Options{
		Registry: v.registry(), Interceptors: []perdure.Interceptor{i},
	}, func(_ context.Context, h *hub) {
		in := h.startTraced(1, testTraceParent(7))
		h.serveFor(time.Hour)
		first, second := h.events(in), h.events(h.current(in))
		if got, want := second[0].TraceParent, first[len(first)-1]; want.Kind != history.OrchestrationContinuedAsNew ||
			got == "" || got != lastTurn(first).TraceParent {
			t.Errorf("second execution starts in %q; first ends with %s in %q",
				got, want.String(), lastTurn(first).TraceParent)
		}
	})
}

// lastTurn returns the last TurnStarted event.
func lastTurn(events []history.Event) (last history.Event) {
	for _, e := range events {
		if e.Kind == history.TurnStarted {
			last = e
		}
	}
	return last
}

// Interleaving: a process crashes after the commit, before or during its sends, and another process resends the
// outputs. All outputs have the trace context of the turn in history, and not of a later turn.
func TestTraceContext_redispatch_keepsContextOfTheTurn(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(simaws.Call) bool{
		"before the send": func(c simaws.Call) bool { return isCommit(c, "h#0000000001") },
		"after the send": func(c simaws.Call) bool {
			in, ok := c.Input.(*sqs.SendMessageBatchInput)
			return ok && strings.Contains(*in.Entries[0].MessageBody, `"activityId"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v traceRecorder
			i, _ := fresh()
			intercept, crashed := crashOnce(true, at)
			inBubble(t, simhub.Options{
				Registry: v.registry(), Interceptors: []perdure.Interceptor{i}, Intercept: intercept, CacheBytes: -1,
			}, func(_ context.Context, h *hub) {
				h.finish(h.startTraced(0, testTraceParent(7)))
				if got := v.seen["parent 0"]; !crashed.Load() || len(got) < 2 ||
					slices.ContainsFunc(got, func(s string) bool {
						return s != testTraceParent(101)
					}) {
					t.Errorf("crashed=%v: activity has %q", crashed.Load(), got)
				}
			})
		})
	}
}

// Interleaving: two processes run the same turn. Outputs have the trace context of the turn that was committed.
func TestTraceContext_turnConflicts_isDiscarded(t *testing.T) {
	t.Parallel()
	i, n := fresh()
	inBubble(t, simhub.Options{
		Environments: 2, Interceptors: []perdure.Interceptor{i},
	}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		h.turn(0)
		h.complete(in, 1, 3)
		h.turn(1)
		h.complete(in, 1, 4)
		h.turn(0) // 103 conflicts with 102, and the repeated turn has 104
		var turns []string
		for _, e := range h.events(in) {
			if e.Kind == history.TurnStarted {
				turns = append(turns, string(e.TraceParent))
			}
		}
		if want := []string{testTraceParent(101), testTraceParent(102), testTraceParent(104)}; !slices.Equal(turns,
			want) || n.Load() != 104 {
			t.Errorf("got turns %q, %d contexts", turns, n.Load())
		}
	})
}

// During a deployment, turns with and without a trace context alternate in one history, for cached and uncached
// instances.
func TestTraceContext_someTurnsWithout_doesNotMatter(t *testing.T) {
	t.Parallel()
	for _, cache := range []int{0, -1} {
		half := perdure.Interceptor{
			Turn: func(ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
				if turn.Sequence%2 == 0 {
					ctx = perdure.WithTraceParent(ctx, testTraceParent(turn.Sequence))
				}
				next(ctx)
			},
		}
		inBubble(t, simhub.Options{
			Interceptors: []perdure.Interceptor{half}, CacheBytes: cache,
		}, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("chain", 6)); string(end.Output) != "6" {
				t.Errorf("ended with %s, want output 6", end.String())
			}
			h.checkIdle()
		})
	}
}

// A turn receives the trace contexts of its messages, and the turns that scheduled its outcomes. A copy of an event
// changes nothing.
func TestTraceContext_turn_receivesContextsOfItsMessages(t *testing.T) {
	t.Parallel()
	w := &turnRecorder{}
	r := registry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		return f.Await(ctx)
	})
	inBubble(t, simhub.Options{
		Registry: r, Interceptors: []perdure.Interceptor{w.interceptor()},
	}, func(_ context.Context, h *hub) {
		in := h.start("waits", 1)
		h.turn(0)
		for n := range int64(2) {
			m := provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e",
				Data: history.Payload("1"), TraceParent: history.TraceParent(testTraceParent(8 + n)),
			}
			if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		h.turn(0)
		h.complete(in, 1, 3)
		h.turn(0)
		var got [][]string
		for _, turn := range w.turns {
			got = append(got, append(turn.TraceParents, fmt.Sprint(turn.ScheduledByTurns)))
		}
		if diff := cmp.Diff([][]string{{"[]"}, {testTraceParent(8), "[]"}, {"[1]"}}, got); diff != "" {
			t.Errorf("mismatch (-want +got):\n%s", diff)
		}
	})
}

// Invalid trace contexts of any type and length are dropped from messages and work items, and nothing fails.
func TestTraceContext_invalid_isDropped(t *testing.T) {
	t.Parallel()
	for name, hostile := range map[string]string{
		"too long": `"` + strings.Repeat("0", 200<<10) + `"`, "no context": `"00-trace"`, "a number": `7`,
		"an object": `{"a":["b"]}`, "other letters": `"` + strings.ToUpper(testTraceParent(0xab)) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v traceRecorder
			w := &turnRecorder{}
			r := v.registry()
			perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
			})
			inBubble(t, simhub.Options{
				Registry: r, Interceptors: []perdure.Interceptor{w.interceptor()},
			}, func(ctx context.Context, h *hub) {
				in := h.start("waits", 1)
				h.turn(0)
				m := provider.Message{
					V: 1, Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e",
					Data: history.Payload("1"), TraceParent: history.TraceParent(testTraceParent(1)),
				}
				record := provider.Record{
					ID: "r", Group: h.groupOf(in), Sequence: "99999999999999999999", ReceiveCount: 1,
					Body: withTrace(t, m, hostile),
				}
				if failed := h.Orchestrators[0].HandleRecords(ctx, []provider.Record{record}); len(failed) > 0 {
					t.Errorf("got failed records %v", failed)
				}
				if last := h.events(in); last[len(last)-1].Kind != history.OrchestrationCompleted ||
					w.turns[1].TraceParents != nil {
					t.Errorf("history ends with %s, trace contexts %q",
						last[len(last)-1].String(), w.turns[1].TraceParents)
				}
				item := provider.WorkItem{
					V: 1, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ActivityID: 3, Name: "look",
					Queue: "default", Attempt: 1, Input: history.Payload(`"it"`),
					TraceParent: history.TraceParent(testTraceParent(1)),
				}
				h.Workers["default"].HandleRecords(ctx, []provider.Record{{
					ID: "w", ReceiptHandle: "w", ReceiveCount: 1, Body: withTrace(t, item, hostile),
				}})
				if !slices.Equal(v.seen["it"], []string{""}) {
					t.Errorf("activity has trace context %q, want none", v.seen["it"])
				}
			})
		})
	}
}

// groupOf returns the message group of an instance, from its wake.
func (h *hub) groupOf(in provider.Instance) string {
	h.t.Helper()
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(),
		provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID}); err != nil {
		h.t.Fatal(err)
	}
	records := h.receive(h.Provider.Config().InboxURL)
	_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, records...)
	return records[0].Group
}

// withTrace encodes v with another trace context.
func withTrace(t *testing.T, v any, trace string) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(string(b), `"`+testTraceParent(1)+`"`, trace, 1)
	if body == string(b) {
		t.Fatalf("no trace context in %s", b)
	}
	return body
}

// A trace context adds 72 bytes to a message, work item or event.
func TestTraceContext_costs72Bytes(t *testing.T) {
	t.Parallel()
	const want = 72
	size := func(v any) int { b, _ := json.Marshal(v); return len(b) }
	item, message := provider.WorkItem{Name: "a"}, provider.Message{Kind: provider.MessageWake}
	event := history.Event{ID: 1, Kind: history.TurnStarted}
	before := []int{size(item), size(message), size(event)}
	item.TraceParent, message.TraceParent, event.TraceParent = history.TraceParent(testTraceParent(1)),
		history.TraceParent(testTraceParent(1)), history.TraceParent(testTraceParent(1))
	for i, after := range []int{size(item), size(message), size(event)} {
		if after-before[i] != want {
			t.Errorf("value %d: got %d more bytes, want %d", i, after-before[i], want)
		}
	}
}

// An instance whose code cannot continue ends without its code. Its messages to parent and child have the trace context
// of the interceptors of the turn, of the message that ended it, or of its start.
func TestTraceContext_endWithoutCode_isKept(t *testing.T) {
	t.Parallel()
	i, _ := fresh()
	for name, c := range map[string]struct {
		interceptors []perdure.Interceptor
		end          func(ctx context.Context, h *hub, broken *dispatch.Orchestrator)
		want         string
	}{
		"terminated": {nil, terminateMiddle, testTraceParent(7)},
		// the second try, because the first one must read history
		"terminated in another trace context": {[]perdure.Interceptor{i}, terminateMiddle, testTraceParent(102)},
		"deleted": {nil, func(ctx context.Context, h *hub, _ *dispatch.Orchestrator) {
			if err := h.Provider.DeleteInstance(ctx, "middle", true); err != nil {
				h.t.Error(err)
			}
		}, testTraceParent(7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: generations()}, func(ctx context.Context, h *hub) {
				if _, err := h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "top", Name: "top", Input: encoded(t, 0), StartID: "s",
					TraceParent: history.ParseTraceParent(testTraceParent(7)),
				}); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					h.turn(0)
				}
				broken := must(dispatch.NewOrchestrator(perdure.NewRegistry(), h.Provider,
					&dispatch.OrchestratorOptions{BuildID: "broken", Interceptors: c.interceptors}))
				t.Cleanup(broken.Close)
				c.end(ctx, h, broken)

				sent := map[provider.MessageKind]string{}
				for _, r := range h.receive(h.Provider.Config().InboxURL) {
					var m provider.Message
					if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
						t.Fatal(err)
					}
					sent[m.Kind] = string(m.TraceParent)
				}
				if diff := cmp.Diff(map[provider.MessageKind]string{
					provider.MessageChildOutcome: c.want,
					provider.MessageCancel:       c.want,
				}, sent); diff != "" {
					t.Errorf("contexts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func terminateMiddle(_ context.Context, h *hub, broken *dispatch.Orchestrator) {
	h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "middle", Text: "enough"})
	if failed := h.passRecords(broken); len(failed) > 0 {
		h.t.Errorf("got %d failed messages, want 0", len(failed))
	}
}

// generations returns a registry with three orchestrations, each of which waits for the next one.
func generations() *perdure.Registry {
	r := perdure.NewRegistry()
	calls := func(next string) func(*perdure.OrchestrationContext, int) (int, error) {
		return func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallSubOrchestrationByName[int](ctx, next, 0, perdure.WithInstanceID(next)).Await(ctx)
		}
	}
	perdure.AddOrchestration(r, "top", calls("middle"))
	perdure.AddOrchestration(r, "middle", calls("bottom"))
	perdure.AddOrchestration(r, "bottom", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	})
	return r
}
