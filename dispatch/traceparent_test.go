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

// traced is the n-th trace context of a test.
func traced(n int64) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

// travellers notes the trace contexts that activities find in theirs, by their input.
type travellers struct {
	mu   sync.Mutex
	seen map[string][]string
}

// registry has an orchestration that calls an activity, fails it once, and starts a child that does the same.
func (v *travellers) registry() *perdure.Registry {
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
	look := func(ctx *perdure.OrchestrationContext, where string) error {
		_, err := perdure.CallActivityByName[int](ctx, "look", where, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})).Await(ctx)
		return err
	}
	perdure.AddOrchestration(r, "stage", func(ctx *perdure.OrchestrationContext, _ int) (int, error) { return 0, look(ctx, "child") })
	perdure.AddOrchestration(r, "journey", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if err := look(ctx, fmt.Sprint("parent ", n)); err != nil || n == 0 {
			return 0, err
		}
		if _, err := perdure.CallSubOrchestrationByName[int](ctx, "stage", 0).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, 0)
	})
	return r
}

// startTraced starts a journey with a trace context.
func (h *hub) startTraced(n int, trace string) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{
		InstanceID: "i-1", Name: "journey", Input: encoded(h.t, n), StartID: "start-1", TraceParent: history.ParseTraceParent(trace),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// current is an instance as it is now.
func (h *hub) current(in provider.Instance) provider.Instance {
	h.t.Helper()
	now, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// Without interceptors, the context of a start is that of all that follows from it: attempts, children, the next execution.
func TestATraceContextTravelsWithWhatFollows(t *testing.T) {
	t.Parallel()
	var v travellers
	inBubble(t, simhub.Options{Registry: v.registry()}, func(_ context.Context, h *hub) {
		in := h.startTraced(1, traced(7))
		h.serveFor(time.Hour)
		two := []string{traced(7), traced(7)}
		if diff := cmp.Diff(map[string][]string{"parent 1": two, "child": two, "parent 0": two}, v.seen); diff != "" {
			t.Errorf("contexts (-want +got):\n%s", diff)
		}
		if now := h.current(in); now.Status != provider.StatusCompleted || now.ExecutionNumber != 2 {
			t.Errorf("%+v", now)
		}
		h.checkRest()
	})
	inBubble(t, simhub.Options{Registry: v.registry()}, func(_ context.Context, h *hub) {
		in := h.startTraced(0, "")
		h.finish(in)
		if got := v.seen["parent 0"]; !slices.Equal(got, []string{"", ""}) {
			t.Errorf("without one: %q", got)
		}
		for _, e := range h.events(in) {
			if b, _ := json.Marshal(e); strings.Contains(string(b), "traceparent") {
				t.Errorf("without one history has %s", b)
			}
		}
	})
}

// fresh puts another trace context into each turn, as an interceptor of tracing that draws its ids would: from the 101st on.
func fresh() (perdure.Interceptor, *atomic.Int64) {
	n := &atomic.Int64{}
	n.Store(100)
	return perdure.Interceptor{Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
		next(perdure.WithTraceParent(ctx, traced(n.Add(1))))
	}}, n
}

// An interceptor's context takes the place of the start's. Each attempt has that of the turn which scheduled the activity, as history has it.
// No cache: each turn is replayed under another context than before, which no decision depends on.
func TestATurnsTraceContextIsThatOfWhatItSchedules(t *testing.T) {
	t.Parallel()
	var v travellers
	i, _ := fresh()
	inBubble(t, simhub.Options{Registry: v.registry(), Interceptors: []perdure.Interceptor{i}, CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := h.startTraced(0, traced(7))
		h.finish(in)
		var turns []string
		for _, e := range h.events(in) {
			switch e.Kind {
			case history.OrchestrationStarted:
				if e.TraceParent != history.TraceParent(traced(7)) {
					t.Errorf("the start has %q", e.TraceParent)
				}
			case history.TurnStarted:
				turns = append(turns, string(e.TraceParent))
			default:
				if e.TraceParent != "" {
					t.Errorf("%s has %q", e.String(), e.TraceParent)
				}
			}
		}
		if len(turns) != 2 || turns[0] != traced(101) || turns[0] == turns[1] || !slices.Equal(v.seen["parent 0"], []string{turns[0], turns[0]}) {
			t.Errorf("turns %q, activity %q", turns, v.seen["parent 0"])
		}
	})
}

// The next execution begins in the context of the turn that continued as it.
func TestTheNextExecutionBeginsInTheContextOfTheTurnBefore(t *testing.T) {
	t.Parallel()
	var v travellers
	i, _ := fresh()
	inBubble(t, simhub.Options{Registry: v.registry(), Interceptors: []perdure.Interceptor{i}}, func(_ context.Context, h *hub) {
		in := h.startTraced(1, traced(7))
		h.serveFor(time.Hour)
		first, second := h.events(in), h.events(h.current(in))
		if got, want := second[0].TraceParent, first[len(first)-1]; want.Kind != history.OrchestrationContinuedAsNew || got == "" || got != lastTurn(first).TraceParent {
			t.Errorf("the second begins in %q, the first ends with %s in %q", got, want.String(), lastTurn(first).TraceParent)
		}
	})
}

// lastTurn is the event that the last turn began with.
func lastTurn(events []history.Event) (last history.Event) {
	for _, e := range events {
		if e.Kind == history.TurnStarted {
			last = e
		}
	}
	return last
}

// Interleaving: a process dies after the commit, before or in the middle of what the turn sends, and another sends it again. What is sent, and what is sent
// again, has the context of the turn that is history, and not that of a later one.
func TestWhatIsSentAgainHasTheTraceContextOfItsTurn(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(simaws.Call) bool{
		"before it sends": func(c simaws.Call) bool { return isCommit(c, "h#0000000001") },
		"after it has sent": func(c simaws.Call) bool {
			in, ok := c.Input.(*sqs.SendMessageBatchInput)
			return ok && strings.Contains(*in.Entries[0].MessageBody, `"activityId"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v travellers
			i, _ := fresh()
			intercept, crashed := crashOnce(true, at)
			inBubble(t, simhub.Options{Registry: v.registry(), Interceptors: []perdure.Interceptor{i}, Intercept: intercept, CacheBytes: -1}, func(_ context.Context, h *hub) {
				h.finish(h.startTraced(0, traced(7)))
				if got := v.seen["parent 0"]; !crashed.Load() || len(got) < 2 || slices.ContainsFunc(got, func(s string) bool { return s != traced(101) }) {
					t.Errorf("crashed %v, the activity had %q", crashed.Load(), got)
				}
			})
		})
	}
}

// Interleaving: two processes run one turn. What is sent has the context of the one whose commit is in history.
func TestATurnThatLosesLeavesNoTraceContext(t *testing.T) {
	t.Parallel()
	i, n := fresh()
	inBubble(t, simhub.Options{Environments: 2, Interceptors: []perdure.Interceptor{i}}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		h.turn(0)
		h.complete(in, 1, 3)
		h.turn(1)
		h.complete(in, 1, 4)
		h.turn(0) // 103 loses against 102, and is 104 then
		var turns []string
		for _, e := range h.events(in) {
			if e.Kind == history.TurnStarted {
				turns = append(turns, string(e.TraceParent))
			}
		}
		if want := []string{traced(101), traced(102), traced(104)}; !slices.Equal(turns, want) || n.Load() != 104 {
			t.Errorf("history has %q of %d", turns, n.Load())
		}
	})
}

// Interleaving: a deployment half way. Turns with a context and turns without follow each other in one history, warm and cold.
func TestTurnsWithAndWithoutTraceContextsMix(t *testing.T) {
	t.Parallel()
	for _, cache := range []int{0, -1} {
		half := perdure.Interceptor{Turn: func(ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			if turn.Sequence%2 == 0 {
				ctx = perdure.WithTraceParent(ctx, traced(turn.Sequence))
			}
			next(ctx)
		}}
		inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{half}, CacheBytes: cache}, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("chain", 6)); string(end.Output) != "6" {
				t.Errorf("ended with %s", end.String())
			}
			h.checkRest()
		})
	}
}

// A turn learns of the contexts of its messages, and of the turns that it comes back to. A copy of an event changes nothing.
func TestATurnLearnsWhatLedToIt(t *testing.T) {
	t.Parallel()
	w := &onlooker{}
	r := registry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		return f.Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{w.interceptor()}}, func(_ context.Context, h *hub) {
		in := h.start("waits", 1)
		h.turn(0)
		for n := range int64(2) {
			m := provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e", Data: history.Payload("1"), TraceParent: history.TraceParent(traced(8 + n))}
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
		if diff := cmp.Diff([][]string{{"[]"}, {traced(8), "[]"}, {"[1]"}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Contexts that are none, of whatever type and length, are dropped from messages and work items, and nothing fails.
func TestAHostileTraceContextIsDropped(t *testing.T) {
	t.Parallel()
	for name, hostile := range map[string]string{
		"too long": `"` + strings.Repeat("0", 200<<10) + `"`, "no context": `"00-trace"`, "a number": `7`, "an object": `{"a":["b"]}`, "other letters": `"` + strings.ToUpper(traced(0xab)) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v travellers
			w := &onlooker{}
			r := v.registry()
			perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
			})
			inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{w.interceptor()}}, func(ctx context.Context, h *hub) {
				in := h.start("waits", 1)
				h.turn(0)
				m := provider.Message{V: 1, Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e", Data: history.Payload("1"), TraceParent: history.TraceParent(traced(1))}
				record := provider.Record{ID: "r", Group: h.groupOf(in), Sequence: "99999999999999999999", ReceiveCount: 1, Body: withTrace(t, m, hostile)}
				if failed := h.Orchestrators[0].HandleRecords(ctx, []provider.Record{record}); len(failed) > 0 {
					t.Errorf("failed %v", failed)
				}
				if last := h.events(in); last[len(last)-1].Kind != history.OrchestrationCompleted || w.turns[1].TraceParents != nil {
					t.Errorf("history ends with %s, of %q", last[len(last)-1].String(), w.turns[1].TraceParents)
				}
				item := provider.WorkItem{V: 1, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ActivityID: 3, Name: "look", Queue: "default", Attempt: 1, Input: history.Payload(`"it"`), TraceParent: history.TraceParent(traced(1))}
				h.Workers["default"].HandleRecords(ctx, []provider.Record{{ID: "w", ReceiptHandle: "w", ReceiveCount: 1, Body: withTrace(t, item, hostile)}})
				if !slices.Equal(v.seen["it"], []string{""}) {
					t.Errorf("the activity had %q", v.seen["it"])
				}
			})
		})
	}
}

// groupOf is the message group of an instance, as its wake has it.
func (h *hub) groupOf(in provider.Instance) string {
	h.t.Helper()
	if err := h.Provider.EnqueueForOrchestrator(h.t.Context(), provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID}); err != nil {
		h.t.Fatal(err)
	}
	records := h.receive(h.Provider.Config().InboxURL)
	_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, records...)
	return records[0].Group
}

// withTrace writes something with another trace context.
func withTrace(t *testing.T, v any, trace string) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(string(b), `"`+traced(1)+`"`, trace, 1)
	if body == string(b) {
		t.Fatalf("no trace context in %s", b)
	}
	return body
}

// A trace context takes 72 bytes of what it travels in.
func TestWhatATraceContextCosts(t *testing.T) {
	t.Parallel()
	const want = 72
	size := func(v any) int { b, _ := json.Marshal(v); return len(b) }
	item, message := provider.WorkItem{Name: "a"}, provider.Message{Kind: provider.MessageWake}
	event := history.Event{ID: 1, Kind: history.TurnStarted}
	before := []int{size(item), size(message), size(event)}
	item.TraceParent, message.TraceParent, event.TraceParent = history.TraceParent(traced(1)), history.TraceParent(traced(1)), history.TraceParent(traced(1))
	for i, after := range []int{size(item), size(message), size(event)} {
		if after-before[i] != want {
			t.Errorf("%d: %d bytes", i, after-before[i])
		}
	}
}

// An instance whose code cannot go on ends without it: what its parent and its children are told is sent in the context of what ended it all the
// same, as the interceptors of the turn have it, or that of its start.
func TestAnEndWithoutCodeGoesOnWithTheTraceContext(t *testing.T) {
	t.Parallel()
	i, _ := fresh()
	for name, c := range map[string]struct {
		interceptors []perdure.Interceptor
		end          func(ctx context.Context, h *hub, broken *dispatch.Orchestrator)
		want         string
	}{
		"terminated":                         {nil, terminateMiddle, traced(7)},
		"terminated in a context of its own": {[]perdure.Interceptor{i}, terminateMiddle, traced(102)}, // the second try: the first finds that history is to be read
		"deleted": {nil, func(ctx context.Context, h *hub, _ *dispatch.Orchestrator) {
			if err := h.Provider.DeleteInstance(ctx, "middle", true); err != nil {
				h.t.Error(err)
			}
		}, traced(7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: generations()}, func(ctx context.Context, h *hub) {
				if _, err := h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "top", Name: "top", Input: encoded(t, 0), StartID: "s", TraceParent: history.ParseTraceParent(traced(7)),
				}); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					h.turn(0)
				}
				broken := must(dispatch.NewOrchestrator(perdure.NewRegistry(), h.Provider, &dispatch.OrchestratorOptions{BuildID: "broken", Interceptors: c.interceptors}))
				t.Cleanup(broken.Close)
				c.end(ctx, h, broken)

				told := map[provider.MessageKind]string{}
				for _, r := range h.receive(h.Provider.Config().InboxURL) {
					var m provider.Message
					if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
						t.Fatal(err)
					}
					told[m.Kind] = string(m.TraceParent)
				}
				if diff := cmp.Diff(map[provider.MessageKind]string{provider.MessageChildOutcome: c.want, provider.MessageCancel: c.want}, told); diff != "" {
					t.Errorf("contexts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func terminateMiddle(_ context.Context, h *hub, broken *dispatch.Orchestrator) {
	h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "middle", Text: "enough"})
	if failed := h.give(broken); len(failed) > 0 {
		h.t.Errorf("%d messages failed", len(failed))
	}
}

// generations are three instances, each of which waits for the next.
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
