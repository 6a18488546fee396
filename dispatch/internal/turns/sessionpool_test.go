package turns

import (
	"context"
	"log/slog"
	"reflect"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// newTestOrchestrator returns an orchestrator without a provider.
func newTestOrchestrator(interceptors ...perdure.Interceptor) *Orchestrator {
	return NewOrchestrator(&registry.Registry{}, nil, Options{
		Logger: slog.New(slog.DiscardHandler), Interceptors: interceptors,
	})
}

// testItem returns an item with a message.
func testItem() *provider.OrchestrationItem {
	return &provider.OrchestrationItem{InstanceID: "a", Messages: make([]provider.InboxMessage, 1)}
}

// A reused session has no data of its previous item.
func TestSession_reused_isEmpty(t *testing.T) {
	t.Parallel()
	o := newTestOrchestrator()
	s := o.newSession(testItem(), true)
	s.inline.Start(t.Context(), o.inline, s.item, &s.queue, true)
	s.turn.begin(&s.instance)
	s.x, s.absent, s.maxParked, s.lastExecution = &execution.Execution{}, true, 1, "x"
	s.turn.commit = provider.Turn{InstanceID: "a"}
	s.state = committing
	o.sessions.put(s)
	if !reflect.DeepEqual(s, &session{}) {
		t.Errorf("the reused session is %+v, want an empty one", s)
	}
}

// A session is not reused if an inline activity or an interceptor may still refer to it.
func TestSession_codeMayStillRun_isNotReused(t *testing.T) {
	t.Parallel()
	pass := perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			next(ctx)
		},
	}
	for name, c := range map[string]struct {
		o   *Orchestrator
		run func(s *session)
	}{
		"an inline activity has started": {newTestOrchestrator(), startInline(t)},
		"there are interceptors":         {newTestOrchestrator(pass), func(*session) {}},
	} {
		s := c.o.newSession(testItem(), false)
		c.run(s)
		c.o.sessions.put(s)
		if s.item == nil || c.o.sessions.get() == s {
			t.Errorf("%s: the session is reused", name)
		}
	}
}

// startInline returns a function that starts an inline activity in a session.
func startInline(t *testing.T) func(s *session) {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "a", n, perdure.Inline()).Await(ctx)
	})
	return func(s *session) {
		s.o = NewOrchestrator((*registry.Registry)(r), nil, Options{Logger: slog.New(slog.DiscardHandler)})
		start := history.Event{
			ID: 1, Kind: history.OrchestrationStarted, Name: "o", Time: s.o.Clock(), Input: history.Payload("1"),
		}
		err := s.loadFrom(t.Context(), &provider.Orchestration{
			InstanceID: "a", Verified: true, Segments: []provider.Segment{{Events: []history.Event{start}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.inline.Start(t.Context(), s.o.inline, s.item, &s.queue, false)
		s.turn.begin(&s.instance)
		if next, err := s.runCode(t.Context()); next != committing || err != nil || !s.inline.Started() {
			t.Fatalf("no inline activity has started: %v, %v", next, err)
		}
	}
}
