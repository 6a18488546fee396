package perduretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func nap(ctx context.Context, d time.Duration) (time.Duration, error) {
	start := time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return time.Since(start), context.Cause(ctx)
}

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "nap", nap)
	perdure.AddOrchestration(r, "naps",
		func(ctx *perdure.OrchestrationContext, ds []time.Duration) (time.Duration, error) {
			var fs []*perdure.Future[time.Duration]
			for _, d := range ds {
				fs = append(fs, perdure.CallActivity(ctx, nap, d))
			}
			start := ctx.Now()
			err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...)
			return ctx.Now().Sub(start), err
		})
	perdure.AddOrchestration(r, "sleep", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		return "slept", perdure.Sleep(ctx, d)
	})
	perdure.AddOrchestration(r, "stuck", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		_, err := perdure.CallActivityByName[string](ctx, "missing", nil).Await(ctx)
		return "", err
	})
	return r
}

func TestAdvance_activitiesTakeHours_instanceCompletesOnTime(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	ctx := t.Context()
	id, err := env.Client().Start(ctx, "naps", []time.Duration{time.Second, time.Hour, 90 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	began := env.Now()
	env.Advance(time.Hour + 15*time.Minute)
	if s, err := env.Client().Status(ctx, id); err != nil || s.Status != client.StatusRunning {
		t.Fatalf("after 75 minutes: got %v, error %v", s.Status, err)
	}
	env.Advance(15 * time.Minute)
	s, err := env.Client().Status(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if took, err := client.Result[time.Duration](s); err != nil || took != 90*time.Minute {
		t.Errorf("duration of the orchestration: got %v, error %v", took, err)
	}
	if moved := env.Now().Sub(began); moved != 90*time.Minute {
		t.Errorf("time on the clock: got %v", moved)
	}
}

func TestRunUntilIdle_timerIsPending_doesNotMoveTheClock(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id, err := env.Client().Start(t.Context(), "sleep", 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before := env.Now()
	env.RunUntilIdle()
	s, err := env.Client().Status(t.Context(), id)
	if err != nil || s.Status != client.StatusRunning || !env.Now().Equal(before) {
		t.Errorf("got status %v, error %v, time %v", s.Status, err, env.Now().Sub(before))
	}
}

func TestWait_timerIsPending_advancesTheClock(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	before := env.Now()
	id, err := env.Client().Start(t.Context(), "sleep", 26*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil || s.Status != client.StatusCompleted {
		t.Fatal(s.Status, err)
	}
	if late := env.Now().Sub(before) - 26*time.Hour; late < 0 || late > time.Second {
		t.Errorf("timer: got delay %v", late)
	}
}

func TestWait_instanceCannotEnd_returnsIdleError(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id, err := env.Client().Start(t.Context(), "stuck", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.Client().Wait(t.Context(), id)
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok || idle.InstanceID != id ||
		idle.Status != client.StatusRunning {
		t.Errorf("got %v", err)
	}
}

func TestWait_contextIsCancelled_returnsItsError(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id, err := env.Client().Start(t.Context(), "sleep", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := env.Client().Wait(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with a cancelled context: got error %v", err)
	}
}

func TestStart_nameOfAnActivity_isUnknownOrchestration(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	if _, err := env.Client().Start(t.Context(), "nap", nil); !errors.Is(err, client.ErrUnknownOrchestration) {
		t.Errorf("got %v", err)
	}
}

// A rejected name or version may be misspelled. The error lists the valid ones.
func TestStart_unknownNameOrVersion_errorListsRegisteredOnes(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddEntity(r, "counter",
		perdure.Operation("add", func(_ *perdure.OrchestrationContext, _ *int, n int) (int, error) {
			return n, nil
		}))
	hub := perduretest.New(t, r).Client()
	_, err := hub.Start(t.Context(), "slep", time.Hour)
	if want := `"slep" (registered: ["naps" "sleep" "stuck"])`; !errors.Is(err, client.ErrUnknownOrchestration) ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = hub.Start(t.Context(), "sleep", time.Hour, client.WithVersion("2"))
	if want := `"sleep" version "2" (registered versions: ["0"])`; !errors.Is(err, client.ErrUnknownOrchestration) ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
