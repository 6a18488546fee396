package perduretest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// bank charges each key once.
type bank struct {
	mu        sync.Mutex
	charged   map[string]int
	requested int
}

func (b *bank) charge(_ context.Context, key string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requested++
	b.charged[key]++
	return len(b.charged), nil
}

func (b *bank) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", b.charge)
	perdure.AddOrchestration(r, "subscribe", func(ctx *perdure.OrchestrationContext, months int) (int, error) {
		paid := 0
		for range months {
			n, err := perdure.CallActivityByName[int](ctx, "charge", "key").Await(ctx)
			if err != nil {
				return paid, err
			}
			paid += n
			if err := perdure.Sleep(ctx, 30*24*time.Hour); err != nil {
				return paid, err
			}
		}
		return paid, nil
	})
	return r
}

// The work is completed wherever the process crashes. An activity runs again if its process crashes.
func TestCrashAtEveryCall_processDies_workIsCompleted(t *testing.T) {
	t.Parallel()
	again, runs := 0, 0
	t.Run("crashes", func(t *testing.T) {
		perduretest.CrashAtEveryCall(t, func(t *testing.T, crash perduretest.Option) *perduretest.Env {
			t.Helper()
			b := &bank{charged: map[string]int{}}
			env := perduretest.New(t, b.registry(), crash)
			s, err := env.Client().Wait(t.Context(), start(t, env, "subscribe", 2))
			if err != nil {
				t.Fatal(err)
			}
			if paid, err := client.Result[int](s); err != nil || paid != 2 {
				t.Errorf("got %d payments, error %v", paid, err)
			}
			runs++
			if b.requested > 2 {
				again++
			}
			return env
		})
	})
	if runs < 4 || again == 0 && !testing.Short() {
		t.Errorf("got %d runs, in %d of them an activity ran again", runs, again)
	}
}

// An outage of a misspelled service would fail no call, so Outage fails the test.
func TestOutage_unknownService_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		perduretest.New(t, perdure.NewRegistry()).Outage("Dynamo", time.Hour)
	}, `perduretest: Outage: unknown service "Dynamo"; want one of ["DynamoDB" "SQS" "Scheduler" "S3"]`)
}

func TestOutage_hasEnded_instanceCompletes(t *testing.T) {
	t.Parallel()
	for _, service := range []perduretest.Service{perduretest.DynamoDB, perduretest.SQS, perduretest.Scheduler} {
		t.Run(string(service), func(t *testing.T) {
			t.Parallel()
			b := &bank{charged: map[string]int{}}
			env := perduretest.New(t, b.registry())
			id := start(t, env, "subscribe", 1)
			env.Outage(service, time.Hour)
			if _, err := env.Client().Start(t.Context(), "subscribe", 1,
				client.WithInstanceID("x")); service == perduretest.DynamoDB && err == nil {
				t.Error("start without the table: got no error")
			}
			began := env.Now()
			env.Advance(30 * time.Minute)
			if b.requested > 0 && service == perduretest.DynamoDB {
				t.Errorf("an activity ran without the table")
			}
			s, err := env.Client().Wait(t.Context(), id)
			for err != nil && env.Now().Sub(began) < time.Hour {
				env.Advance(time.Minute) // Wait also fails during the outage
				s, err = env.Client().Wait(t.Context(), id)
			}
			if err != nil || s.Status != client.StatusCompleted {
				t.Errorf("got %s, error %v", s.Status, err)
			}
		})
	}
}

// A list fails during an outage, like any call of the Client. Calls of S3 are retried after an outage.
func TestOutage_listsAndPayloads_failUntilItEnds(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "large", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		return perdure.CallActivityByName[string](ctx, "scan", nil).Await(ctx)
	})
	perdure.AddActivity(r, "scan", func(context.Context, struct{}) (string, error) {
		return strings.Repeat("x", 1<<20), nil
	})
	env := perduretest.New(t, r, perduretest.WithLargePayloads())
	env.Outage(perduretest.DynamoDB, time.Hour)
	if _, err := client.Collect(env.Client().Schedules().List(t.Context())); err == nil {
		t.Error("list of schedules without the table: got no error")
	}
	env.Advance(time.Hour)

	id := start(t, env, "large", nil)
	env.Outage(perduretest.S3, time.Hour)
	env.Advance(50 * time.Minute)
	if s, err := env.Client().Status(t.Context(), id); err != nil || s.Status != client.StatusRunning {
		t.Errorf("without the bucket: got %s, error %v", s.Status, err)
	}
	if got := result(t, env, id); len(got) != 1<<20 {
		t.Errorf("got %d bytes", len(got))
	}
}

// approved returns a registry whose orchestration waits for an approval and then calls an activity.
func approved(activity string, before ...string) *perdure.Registry {
	r := perdure.NewRegistry()
	for _, name := range append(before, activity) {
		perdure.AddActivity(r, name, func(context.Context, int) (string, error) { return name, nil })
	}
	perdure.AddOrchestration(r, "approve", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		for _, name := range before {
			if _, err := perdure.CallActivityByName[string](ctx, name, 1).Await(ctx); err != nil {
				return "", err
			}
		}
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return "", err
		}
		done, err := perdure.CallActivityByName[string](ctx, activity, 1).Await(ctx)
		return done, err
	})
	return r
}

// A waiting instance continues with newly deployed code. It blocks if the code does not match its history, and
// continues with code that does.
func TestDeploy_incompatibleThenCompatibleCode_blocksThenContinues(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, approved("v1"))
	env.Stub("elsewhere").Returns("stub")
	id := start(t, env, "approve", nil)
	env.Advance(time.Hour)

	env.Deploy(approved("v2", "first")) // another activity before the wait
	raise(t, env, id, "go", 1)
	_, err := env.Client().Wait(t.Context(), id)
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || idle.Status != client.StatusBlocked || idle.Diagnosis == nil ||
		!strings.Contains(idle.Diagnosis.Message, "nondeterminism") {
		t.Fatalf("want an IdleError for a blocked instance: %v", err)
	}

	env.Deploy(approved("elsewhere"))
	if got := result(t, env, id); got != "stub" {
		t.Errorf("got %q", got)
	}
	var names []string
	for _, c := range env.Calls() {
		names = append(names, c.Activity)
	}
	if !slices.Equal(names, []string{"elsewhere"}) {
		t.Errorf("got calls %v", names)
	}
}

func TestDeploy_stubOfUnregisteredActivity_remains(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, shop())
	env.Stub("pack", perdure.OnQueue("warehouse")).Returns("box")
	env.Deploy(shop())
	if got := result(t, env, start(t, env, "order", 5)); got != "box for real 5" {
		t.Errorf("got %q", got)
	}
}

func TestDeploy_newQueue_isServed(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, approved("v1"))
	id := start(t, env, "approve", nil)
	env.RunUntilIdle()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "v2", func(context.Context, int) (string, error) {
		return "v2", nil
	}, perdure.OnQueue("new"))
	perdure.AddOrchestration(r, "approve", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return "", err
		}
		return perdure.CallActivityByName[string](ctx, "v2", 1).Await(ctx)
	})
	env.Deploy(r)
	raise(t, env, id, "go", 1)
	if got := result(t, env, id); got != "v2" {
		t.Errorf("got %q", got)
	}
}
