package queries

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// hub has the history of an instance.
type hub struct {
	provider.Provider

	read *provider.Orchestration
}

func (h *hub) ReadOrchestration(
	context.Context, *provider.OrchestrationItem, provider.Consistency,
) (*provider.Orchestration, error) {
	return h.read, nil
}

// handler returns a handler for an instance with the given events after its start. The orchestration "o" is registered.
func handler(name string, events ...history.Event) *Handler {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "o", func(*perdure.OrchestrationContext, int) (int, error) { return 0, nil })
	start := history.Event{ID: 1, Kind: history.OrchestrationStarted, Name: name, Time: time.Unix(1, 0)}
	h := &hub{read: &provider.Orchestration{
		InstanceID: "i-1", Segments: []provider.Segment{{Events: append([]history.Event{start}, events...)}},
	}}
	return NewHandler(&execution.Loader{
		Base: intake.NewBase(h, time.Now, nil), Registry: (*registry.Registry)(r), BuildID: "b1",
		TurnTimeout: time.Minute,
	})
}

// A query is rejected if the code must not run, is not registered, or has not run yet.
func TestHandle_codeCannotRunTheQuery_isRejected(t *testing.T) {
	t.Parallel()
	poison := history.Event{
		ID: 2, Kind: history.InputsParked, BuildID: "b1", Error: &history.Failure{Type: history.TypePoison},
	}
	other := poison
	other.BuildID = "b2"
	for name, c := range map[string]struct {
		orchestration string
		events        []history.Event
		want          provider.QueryCode
	}{
		"no turn yet":               {"o", nil, provider.QueryNotStarted},
		"not registered":            {"p", nil, provider.QueryUnregistered},
		"poison in this build":      {"o", []history.Event{poison}, provider.QueryBlocked},
		"poison in another build":   {"o", []history.Event{other}, provider.QueryNotStarted},
		"poison and not registered": {"p", []history.Event{poison}, provider.QueryBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := handler(c.orchestration, c.events...).Handle(t.Context(), &provider.QueryRequest{Name: "q"})
			if e, ok := errors.AsType[*provider.QueryError](err); !ok || e.Code != c.want {
				t.Errorf("got error %v, want code %s", err, c.want)
			}
		})
	}
}

// Three calls of a handler that have not returned stop further calls of this handler, until one returns.
func TestLimits_threeHungCalls_rejectTheHandler(t *testing.T) {
	t.Parallel()
	h := handler("o")
	code, _ := h.loader.Registry.Orchestration("o", "")
	q, returned := &provider.QueryRequest{Name: "q"}, make(chan struct{})
	for range 3 {
		if err := h.limits.check(q, &code); err != nil {
			t.Errorf("refused too early: %v", err)
		}
		h.limits.addHung(q, &code, returned)
	}
	if err := h.limits.check(q, &code); err == nil {
		t.Error("the handler is called a fourth time")
	}
	if err := h.limits.check(&provider.QueryRequest{Name: "other"}, &code); err != nil {
		t.Errorf("another handler is refused: %v", err)
	}
	if close(returned); h.limits.check(q, &code) != nil {
		t.Error("the handler is refused after its calls have returned")
	}
}
