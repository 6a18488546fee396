package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/scenarios"
)

// hub is a hub whose code is replaced while instances are under way.
type hub struct {
	*simhub.Hub

	t      *testing.T
	client *client.Client
	gone   []*dispatch.Orchestrator
}

// inBubble runs f on a hub in virtual time. r is the first build, and what the worker runs.
func inBubble(t *testing.T, r *perdure.Registry, f func(ctx context.Context, h *hub)) {
	t.Helper()
	withFault(t, r, nil, f)
}

// withFault is inBubble with harm done to the functions' calls.
func withFault(t *testing.T, r *perdure.Registry, intercept simaws.Interceptor, f func(ctx context.Context, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim, err := simhub.New(simhub.Options{
			Registry: r, Exclusive: true, TurnLimit: time.Second, Intercept: intercept,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := &hub{Hub: sim, t: t, client: client.New(sim.Provider)}
		defer h.leave()
		f(t.Context(), h)
	})
}

// leave unwinds what is warm: all goroutines of the bubble must end. A body that blocks outside of perdure is waited
// for.
func (h *hub) leave() {
	for _, o := range h.gone {
		o.Close()
	}
	h.Close()
	time.Sleep(24 * time.Hour)
}

// build is a registry with what the scenarios share, and what add adds.
func build(add func(r *perdure.Registry)) *perdure.Registry {
	r := perdure.NewRegistry()
	scenarios.Register(r)
	if add != nil {
		add(r)
	}
	return r
}

// environment is one more of the orchestrator function, of a build that has just reported.
func (h *hub) environment(r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	time.Sleep(time.Second) // builds that report at the same moment are not told apart
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{
		BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	}))
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// deploy replaces all environments by one of another build.
func (h *hub) deploy(r *perdure.Registry, build string) {
	h.t.Helper()
	h.gone = append(h.gone, h.Orchestrators...)
	h.Orchestrators = []*dispatch.Orchestrator{h.environment(r, build)}
}

// serve lets the functions run for a while, with the watch that looks every few minutes.
func (h *hub) serve(d time.Duration) {
	h.t.Helper()
	const each = 5 * time.Minute
	for ; d > 0; d -= each {
		h.ServeFor(h.t.Context(), each)
		if _, err := h.Timekeeper.Sweep(h.t.Context()); err != nil {
			h.t.Error(err)
		}
	}
}

func (h *hub) start(id, name string, input any, opts ...client.StartOption) {
	h.t.Helper()
	if _, err := h.client.Start(h.t.Context(), name, input, append(opts, client.WithInstanceID(id))...); err != nil {
		h.t.Fatal(err)
	}
}

// tell raises the event that all wait for.
func (h *hub) tell(id string, data any) {
	h.t.Helper()
	if err := h.client.RaiseEvent(h.t.Context(), id, "go", data); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) status(id string) client.Status {
	h.t.Helper()
	s, err := h.client.Status(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// blocked wants an instance to be listed as blocked, and returns what its status says is wrong.
func (h *hub) blocked(id string) *history.Failure {
	h.t.Helper()
	listed := false
	for s, err := range h.client.List(h.t.Context(), client.ListQuery{Status: client.StatusBlocked}) {
		if err != nil {
			h.t.Fatal(err)
		}
		listed = listed || s.InstanceID == id
	}
	s := h.status(id)
	if !listed || s.Status != client.StatusBlocked || s.Failure == nil {
		h.t.Fatalf("instance %q is listed as blocked: %v; it is %s, %+v", id, listed, s.Status, s.Failure)
	}
	return s.Failure
}

// completed wants an instance to have completed with this output, and the hub to have come to rest.
func (h *hub) completed(id, output string) {
	h.t.Helper()
	if s := h.status(id); s.Status != client.StatusCompleted || string(s.Output) != output {
		h.t.Errorf("instance %q: %s with %s, %+v; want %s", id, s.Status, s.Output, s.Failure, output)
	}
	if err := h.CheckRest(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// must returns what was made: a test gives all that is required.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
