package selftest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
	"github.com/perdure/perdure/schedule"
)

// inMemory runs f with a hub in memory that has the application of the self-test, in virtual time.
func inMemory(t *testing.T, r *perdure.Registry, f func(ctx context.Context, h *hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		simulated, err := simhub.New(simhub.Options{Registry: r, Bucket: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { simulated.Cloud.Serve(ctx) })
		running.Go(func() {
			for sleep.For(ctx, time.Minute) == nil {
				_, _ = simulated.Renewer.Sweep(ctx) // the next one repeats what failed
			}
		})
		f(ctx, &hub{
			client: client.New(simulated.Provider), admin: admin.New(simulated.Provider), now: time.Now, sleep: sleep.For,
			progress: io.Discard, deployment: &hubadmin.Admin{
				Config: simulated.Provider.Config(), Instances: simulated.Provider, Queues: simulated.Cloud.Queues,
			},
		})
		cancel()
		running.Wait()
		simulated.Close()
		synctest.Wait()
	})
}

// deployedCode returns the registry of the functions.
func deployedCode() *perdure.Registry {
	r := app.Registry(nil)
	schedule.Register(r)
	return r
}

func TestOperations_inMemory_pass(t *testing.T) {
	t.Parallel()
	inMemory(t, deployedCode(), func(ctx context.Context, h *hub) {
		for _, operation := range h.operations(false) {
			if operation.name == apiScenario {
				continue // the end-to-end test has an HTTP API
			}
			if r := h.runScenario(ctx, &operation); r.Error != "" {
				t.Errorf("%s: %s", r.Name, r.Error)
			}
		}
		if detail, err := h.drained(ctx); err != nil || detail != "2 queues are empty" {
			t.Errorf("drained: got %q, %v", detail, err)
		}
	})
}

// An orchestration that returns another result, and one that never receives its event, fail their scenarios.
func TestOperations_wrongApplication_fail(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	schedule.Register(r)
	perdure.AddOrchestration(r, app.FanOut, func(*perdure.OrchestrationContext, int) (int, error) { return 1, nil })
	perdure.AddOrchestration(r, app.Steps, func(*perdure.OrchestrationContext, int) (int, error) { return 60, nil })
	perdure.AddOrchestration(r, app.Greet, func(*perdure.OrchestrationContext, string) (string, error) {
		return "goodbye", nil
	})
	perdure.AddOrchestration(r, app.Receive, func(ctx *perdure.OrchestrationContext, _ string) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "another").Await(ctx)
	})
	want := map[string]string{
		"FanOutOf100": "want 5050", "EventStream": "0 of 60 activities", "ScheduledRun": `want "hello, world"`,
		"PurgedIDReused": `want "hello, again"`, "DeadLetterRedriven": "deadline exceeded",
	}
	inMemory(t, r, func(ctx context.Context, h *hub) {
		for _, operation := range h.operations(true) {
			if operation.name == apiScenario {
				continue
			}
			if r := h.runScenario(ctx, &operation); !strings.Contains(r.Error, want[r.Name]) || want[r.Name] == "" {
				t.Errorf("%s: got %q, want %q", r.Name, r.Error, want[r.Name])
			}
		}
	})
}
