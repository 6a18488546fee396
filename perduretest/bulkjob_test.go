package perduretest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
)

func startBulk(t *testing.T, env *perduretest.Env, b admin.JobRequest) (jobID string) {
	t.Helper()
	j, err := env.Admin().StartJob(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

func readJob(t *testing.T, env *perduretest.Env, id string) admin.Job {
	t.Helper()
	j, err := env.Admin().Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// statusOf returns the status of an instance, or an empty status if it does not exist.
func statusOf(t *testing.T, env *perduretest.Env, id string) client.RuntimeStatus {
	t.Helper()
	s, err := env.Client().Status(t.Context(), id)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		t.Fatal(err)
	}
	return s.Status
}

func TestBulkJob_timeAdvances_finishes(t *testing.T) {
	t.Parallel()
	const gone = client.RuntimeStatus("")
	for name, c := range map[string]struct {
		bulk admin.JobRequest
		opts []perduretest.Option
		want client.RuntimeStatus
	}{
		"cancel":    {bulk: admin.JobRequest{Operation: admin.OperationCancel}, want: client.StatusCancelled},
		"terminate": {bulk: admin.JobRequest{Operation: admin.OperationTerminate}, want: client.StatusTerminated},
		"purge":     {bulk: admin.JobRequest{Operation: admin.OperationPurge, Force: true}, want: gone},
		"with a cache": {
			bulk: admin.JobRequest{Operation: admin.OperationCancel},
			opts: []perduretest.Option{perduretest.WithCache()}, want: client.StatusCancelled,
		},
		"with a table": {
			bulk: admin.JobRequest{Operation: admin.OperationPurge, Force: true},
			opts: []perduretest.Option{perduretest.WithTable("hub", "pk", "sk")}, want: gone,
		},
		"with a bucket": {
			bulk: admin.JobRequest{Operation: admin.OperationPurge, Force: true},
			opts: []perduretest.Option{perduretest.WithLargePayloads()}, want: gone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, registry(), c.opts...)
			const matched = 250 // more than a batch of a job
			for n := range matched {
				if _, err := env.Client().Start(t.Context(), "sleep", 24*time.Hour,
					client.WithInstanceID(fmt.Sprint("s-", n))); err != nil {
					t.Fatal(err)
				}
			}
			other := start(t, env, "stuck", nil)
			env.Advance(time.Second)

			c.bulk.Filter = admin.Filter{Orchestration: "sleep"}
			id := startBulk(t, env, c.bulk)
			env.RunUntilIdle()
			if j := readJob(t, env, id); j.Ended() || j.Done > 0 {
				t.Errorf("before time advances: got %+v", j)
			}
			env.Advance(2 * time.Minute)
			if j := readJob(t, env, id); j.State != provider.JobCompleted || j.Done != matched || j.Failed > 0 {
				t.Errorf("after two minutes: got %+v", j)
			}
			for n := range matched {
				if got := statusOf(t, env, fmt.Sprint("s-", n)); got != c.want {
					t.Fatalf("instance %d: got status %q", n, got)
				}
			}
			if got := statusOf(t, env, other); got != client.StatusRunning {
				t.Errorf("unselected instance: got status %q", got)
			}
		})
	}
}

func TestBulkJob_startedAtATick_waitsForTheNextTick(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id := start(t, env, "sleep", time.Hour)
	env.Advance(2 * time.Minute)
	job := startBulk(t, env, admin.JobRequest{
		Operation: admin.OperationTerminate, Filter: admin.Filter{Orchestration: "sleep"},
	})
	env.Advance(2*time.Minute - time.Second)
	if j := readJob(t, env, job); j.Ended() {
		t.Errorf("before the tick: got %+v", j)
	}
	env.Advance(time.Second)
	if j := readJob(t, env, job); !j.Ended() || statusOf(t, env, id) != client.StatusTerminated {
		t.Errorf("at the tick: got %+v", j)
	}
}

// The job ends an instance that would otherwise never end, so that Wait returns.
func TestBulkJob_waitForAnInstance_endsWithTheJob(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, eventRegistry())
	id := start(t, env, "two-events", nil)
	env.RunUntilIdle()
	bulk := admin.JobRequest{Operation: admin.OperationTerminate, Filter: admin.Filter{Orchestration: "two-events"}}
	if p, err := env.Admin().PreviewJob(t.Context(), bulk); err != nil || p.Matched != 1 {
		t.Errorf("preview of an instance that has just started: got %+v, error %v", p, err)
	}
	startBulk(t, env, bulk)
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusTerminated {
		t.Errorf("got %s, error %v", s.Status, err)
	}

	id = start(t, env, "two-events", nil)
	_, err := env.Client().Wait(t.Context(), id)
	if _, idle := errors.AsType[*perduretest.IdleError](err); !idle {
		t.Errorf("without a job: got error %v", err)
	}
}

func TestBulkJob_cancelled_changesNothing(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id := start(t, env, "sleep", time.Hour)
	job := startBulk(t, env, admin.JobRequest{
		Operation: admin.OperationTerminate, Filter: admin.Filter{Orchestration: "sleep"},
	})
	if _, err := env.Admin().CancelJob(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	env.Advance(10 * time.Minute)
	if got := statusOf(t, env, id); got != client.StatusRunning {
		t.Errorf("got status %s", got)
	}
}

func TestBulkJob_outage_finishesAfterIt(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id := start(t, env, "sleep", 24*time.Hour)
	env.Advance(time.Second)
	job := startBulk(t, env, admin.JobRequest{
		Operation: admin.OperationCancel, Filter: admin.Filter{Orchestration: "sleep"},
	})
	env.Outage(perduretest.DynamoDB, time.Hour)
	env.Advance(time.Hour + 4*time.Minute)
	if j := readJob(t, env, job); j.State != provider.JobCompleted || j.Done != 1 {
		t.Errorf("after the outage: got %+v", j)
	}
	if got := statusOf(t, env, id); got != client.StatusCancelled {
		t.Errorf("got status %s", got)
	}
}

// An activity starts a job and waits for it in virtual time. An activity of WithNetwork cannot wait.
func TestBulkJob_startedByAnActivity_finishes(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]perduretest.Option{
		"virtual": nil, "network": {perduretest.WithNetwork("clean")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env *perduretest.Env
			r := registry()
			perdure.AddActivity(r, "clean", func(ctx context.Context, wait bool) (string, error) {
				j, err := env.Admin().StartJob(ctx, admin.JobRequest{
					Operation: admin.OperationTerminate, Filter: admin.Filter{Orchestration: "sleep"},
				})
				for wait && err == nil && !j.Ended() {
					time.Sleep(time.Second)
					j, err = env.Admin().Job(ctx, j.ID)
				}
				return j.ID, err
			})
			perdure.AddOrchestration(r, "cleans", func(ctx *perdure.OrchestrationContext, wait bool) (string, error) {
				return perdure.CallActivityByName[string](ctx, "clean", wait).Await(ctx)
			})
			env = perduretest.New(t, r, opts...)
			sleeps := start(t, env, "sleep", 24*time.Hour)
			env.Advance(time.Second)
			job := result(t, env, start(t, env, "cleans", opts == nil))
			env.Advance(2 * time.Minute)
			if j := readJob(t, env, job); j.Done != 1 || statusOf(t, env, sleeps) != client.StatusTerminated {
				t.Errorf("got %+v, status %s", j, statusOf(t, env, sleeps))
			}
		})
	}
}

// A job processes many instances concurrently. Their later work has the same order in every run.
func TestBulkJob_sameProgram_sameOrder(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "undo", func(_ context.Context, id string) (string, error) { return id, nil })
	perdure.AddOrchestration(r, "parent", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		child := perdure.CallSubOrchestrationByName[string](ctx, "sleep", time.Hour,
			perdure.WithInstanceID(ctx.InstanceID()+"-child"))
		if _, err := child.Await(ctx); err == nil {
			return "", nil
		}
		ctx = perdure.WithoutCancel(ctx)
		return perdure.CallActivityByName[string](ctx, "undo", ctx.InstanceID()).Await(ctx)
	})
	for name, bulk := range map[string]admin.JobRequest{
		"cancel": {Operation: admin.OperationCancel, Filter: admin.Filter{Orchestration: "parent"}},
		"purge of a child": {
			Operation: admin.OperationPurge, Force: true, Filter: admin.Filter{Orchestration: "sleep"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := orderOfUndo(t, r, bulk)
			for range shortrun.Few(5, 20) {
				if got := orderOfUndo(t, r, bulk); got != first {
					t.Fatalf("got order %s\nwant that of the first run %s", got, first)
				}
			}
		})
	}
}

// orderOfUndo returns the instances for which "undo" is called after a job, in order.
func orderOfUndo(t *testing.T, r *perdure.Registry, bulk admin.JobRequest) string {
	t.Helper()
	env := perduretest.New(t, r)
	const parents = 40
	for i := range parents {
		if _, err := env.Client().Start(t.Context(), "parent", nil,
			client.WithInstanceID(fmt.Sprint("i-", i))); err != nil {
			t.Fatal(err)
		}
	}
	env.Advance(time.Second)
	startBulk(t, env, bulk)
	env.Advance(3 * time.Minute)
	var order []string
	for _, c := range env.Calls("undo") {
		order = append(order, c.InstanceID)
	}
	if len(order) != parents {
		t.Errorf("got %d compensations, want %d", len(order), parents)
	}
	return strings.Join(order, " ")
}

// CrashAtEveryCall tests only calls of functions that run user code. A job adds none.
func TestAWSCalls_jobAndRetention_countNoSweep(t *testing.T) {
	t.Parallel()
	calls := func(t *testing.T, opts ...perdure.OrchestrationOption) int {
		t.Helper()
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "quick", func(*perdure.OrchestrationContext, struct{}) (string, error) {
			return "", nil
		}, opts...)
		env := perduretest.New(t, r)
		result(t, env, start(t, env, "quick", nil))
		if len(opts) > 0 {
			startBulk(t, env, admin.JobRequest{
				Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "none"},
			})
		}
		env.Advance(7 * 24 * time.Hour)
		return env.AWSCalls()
	}
	if without, with := calls(t), calls(t, perdure.WithRetention(time.Hour)); without != with {
		t.Errorf("got %d calls without a retention and a job, but %d with them", without, with)
	}
}
