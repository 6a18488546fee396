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

// hub is a hub whose code is replaced while instances run.
type hub struct {
	*simhub.Hub

	t      *testing.T
	client *client.Client
	gone   []*dispatch.Orchestrator
}

// inBubble runs f on a hub in virtual time. The registry r is the first build of the orchestrator, and the only build
// of the worker.
func inBubble(t *testing.T, r *perdure.Registry, f func(ctx context.Context, h *hub)) {
	t.Helper()
	withFault(t, r, nil, f)
}

// withFault is inBubble with an interceptor that injects faults into calls of the functions.
func withFault(t *testing.T, r *perdure.Registry, intercept simaws.Interceptor, f func(ctx context.Context, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim, err := simhub.New(simhub.Options{
			Registry: r, Exclusive: true, TurnTimeout: time.Second, Intercept: intercept,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := &hub{Hub: sim, t: t, client: client.New(sim.Provider)}
		defer h.leave()
		f(t.Context(), h)
	})
}

// leave closes cached executions and waits for blocked code, because all goroutines of the bubble must end.
func (h *hub) leave() {
	for _, o := range h.gone {
		o.Close()
	}
	h.Close()
	time.Sleep(24 * time.Hour)
}

// build returns a registry with the activities and orchestrations of the scenarios, and the additions of add.
func build(add func(r *perdure.Registry)) *perdure.Registry {
	r := perdure.NewRegistry()
	scenarios.Register(r)
	if add != nil {
		add(r)
	}
	return r
}

// environment returns a new environment of the orchestrator function, with a build that has just reported its
// registrations.
func (h *hub) environment(r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	time.Sleep(time.Second) // reports with equal times cannot be ordered
	o := must(dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{
		BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	}))
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// deploy replaces all environments by an environment of another build.
func (h *hub) deploy(r *perdure.Registry, build string) {
	h.t.Helper()
	h.gone = append(h.gone, h.Orchestrators...)
	h.Orchestrators = []*dispatch.Orchestrator{h.environment(r, build)}
}

// serve runs the functions for a time, with a sweep every few minutes.
func (h *hub) serve(d time.Duration) {
	h.t.Helper()
	const each = 5 * time.Minute
	for ; d > 0; d -= each {
		h.ServeFor(h.t.Context(), each)
		if _, err := h.Renewer.Sweep(h.t.Context()); err != nil {
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

// raiseGo raises the event "go".
func (h *hub) raiseGo(id string, data any) {
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

// blocked fails the test unless an instance is listed as blocked, and returns the failure in its status.
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
		h.t.Fatalf("instance %q: got listed as blocked %v, status %s, failure %+v", id, listed, s.Status, s.Failure)
	}
	return s.Failure
}

// completed fails the test unless an instance has completed with this output and the hub is idle.
func (h *hub) completed(id, output string) {
	h.t.Helper()
	if s := h.status(id); s.Status != client.StatusCompleted || string(s.Output) != output {
		h.t.Errorf("instance %q: got %s with output %s, failure %+v; want %s",
			id, s.Status, s.Output, s.Failure, output)
	}
	if err := h.CheckIdle(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// must returns its first argument, and panics on an error.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
