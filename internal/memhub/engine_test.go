package memhub_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
)

// minimal is a provider without any optional interface.
type minimal struct {
	provider.Core
	provider.NoAnnotations
	provider.NoDeadLetterRecovery
	provider.NoJobs
	provider.NoMonitoring
	provider.NoRetentions
	provider.NoSchedules
}

// order calls an activity that fails once, waits for a timer, and runs a child.
func order(ctx *perdure.OrchestrationContext, n int) (int, error) {
	retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Second})
	sum, err := perdure.CallActivity(ctx, addOne, n, retry).Await(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := perdure.CreateTimer(ctx, time.Minute).Await(ctx); err != nil {
		return 0, err
	}
	return perdure.CallSubOrchestration(ctx, double, sum).Await(ctx)
}

// addOne fails in its first attempt.
func addOne(ctx context.Context, n int) (int, error) {
	if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
		return 0, errors.New("not yet")
	}
	return n + 1, nil
}

func double(_ *perdure.OrchestrationContext, n int) (int, error) { return 2 * n, nil }

func TestEngine_onAProviderWithoutOptionalInterfaces_runsOrchestrations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := memhub.New(time.Now, time.Minute)
		e := newEngine(t, p, minimal{Core: p})
		id, err := e.client.Start(t.Context(), "order", 20)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			e.step(t.Context())
			time.Sleep(time.Second)
		}
		s, err := e.client.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Result[int](s); err != nil || got != 42 {
			t.Errorf("result %d, error %v, status %s; want 42", got, err, s.Status)
		}
		if _, err := e.renewer.Sweep(t.Context()); err != nil {
			t.Errorf("sweep: %v", err)
		}
		for _, err := range e.client.Schedules().List(t.Context()) {
			if !errors.Is(err, errors.ErrUnsupported) ||
				!strings.Contains(err.Error(), "hub does not support schedules") {
				t.Errorf("schedules: %v", err)
			}
		}
	})
}

// engine passes the messages of a hub to its functions.
type engine struct {
	hub          *memhub.Hub
	client       *client.Client
	orchestrator *dispatch.Orchestrator
	worker       *dispatch.Worker
	renewer      *dispatch.Renewer
}

func newEngine(t *testing.T, hub *memhub.Hub, p provider.Provider) *engine {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "add-one", addOne)
	perdure.AddOrchestration(r, "order", order)
	perdure.AddOrchestration(r, "double", double)
	log := slog.New(slog.DiscardHandler)
	e := &engine{hub: hub, client: client.New(p)}
	var err [5]error
	e.orchestrator, err[0] = dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{Logger: log})
	e.worker, err[1] = dispatch.NewWorker(r, p, &dispatch.WorkerOptions{Logger: log})
	e.renewer, err[2] = dispatch.NewRenewer(p, &dispatch.RenewerOptions{Logger: log})
	err[3], err[4] = e.orchestrator.ReportBuild(t.Context()), e.worker.ReportStart(t.Context())
	if err := errors.Join(err[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.orchestrator.Close)
	return e
}

// step passes the visible records of each queue to their handlers, and deletes the records that did not fail.
func (e *engine) step(ctx context.Context) {
	for queue, handle := range map[string]func(context.Context, []provider.Record) []string{
		provider.QueueInbox: e.orchestrator.HandleRecords, provider.QueueTimers: e.renewer.HandleRecords,
		memhub.DefaultQueue: e.worker.HandleRecords,
	} {
		records := e.hub.Receive(queue)
		failed := handle(ctx, records)
		records = slices.DeleteFunc(records, func(r provider.Record) bool { return slices.Contains(failed, r.ID) })
		_ = e.hub.DeleteRecords(ctx, queue, records...) // a failed deletion means a redelivery
	}
}
