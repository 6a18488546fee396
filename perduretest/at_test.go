package perduretest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// AfterFunc runs its function at its time, in Advance and in Wait, before other work that is due then.
func TestAfterFunc_duringAdvanceOrWait_runsAtItsTime(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]bool{"advance": false, "wait": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, eventRegistry())
			id := start(t, env, "approval", time.Hour)
			env.RunUntilIdle()
			began := env.Now()
			var at []time.Duration
			env.AfterFunc(time.Hour, func() { // the timer fires at this time too
				at = append(at, env.Now().Sub(began))
				raise(t, env, id, "approved", "in time")
				env.AfterFunc(time.Minute, func() { at = append(at, env.Now().Sub(began)) })
			})
			env.AfterFunc(time.Minute, func() { at = append(at, env.Now().Sub(began)) })
			if !wait {
				env.Advance(2 * time.Hour)
			}
			s, err := env.Client().Wait(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if wait {
				env.Advance(time.Hour)
			}
			if got, err := client.Result[string](s); err != nil || got != "in time" {
				t.Errorf("got %q, error %v", got, err)
			}
			if want := []time.Duration{time.Minute, time.Hour, time.Hour + time.Minute}; !slices.Equal(at, want) {
				t.Errorf("got callbacks at %v, want %v", at, want)
			}
		})
	}
}

func TestWait_instanceCannotEnd_errorListsAwaitedItems(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return 0, perdure.WhenAll(ctx,
			perdure.WaitForExternalEvent[int](ctx, "packed"),
			perdure.CallSubOrchestrationByName[string](ctx, "stuck", nil, perdure.WithInstanceID("child")))
	})
	env := perduretest.New(t, r)
	id := start(t, env, "waits", nil)
	raise(t, env, id, "paked", nil)
	_, err := env.Client().Wait(t.Context(), id)
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok {
		t.Fatal(err)
	}
	want := []string{
		`external event "packed", which was not raised (raised but not awaited: "paked")`,
		`sub-orchestration "stuck", instance "child", which is Running`,
		`  activity "missing", which is not registered; the registry has "nap"; register it or use Env.Stub`,
	}
	if !slices.Equal(idle.WaitingFor, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(idle.WaitingFor, "\n"), strings.Join(want, "\n"))
	}
}

func TestClient_calledByAnActivity_startsAndWaits(t *testing.T) {
	t.Parallel()
	var env *perduretest.Env
	r := registry()
	perdure.AddActivity(r, "delegate", func(ctx context.Context, d time.Duration) (string, error) {
		id, err := env.Client().Start(ctx, "sleep", d)
		if err != nil {
			return "", err
		}
		s, err := env.Client().Wait(ctx, id)
		if err != nil {
			return "", err
		}
		if _, err := client.Collect(env.Client().History(ctx, id)); err != nil {
			return "", err
		}
		return client.Result[string](s)
	})
	perdure.AddOrchestration(r, "boss", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		return perdure.CallActivityByName[string](ctx, "delegate", d).Await(ctx)
	})
	env = perduretest.New(t, r)
	began := env.Now()
	if got := result(t, env, start(t, env, "boss", time.Hour)); got != "slept" {
		t.Errorf("got %q", got)
	}
	if took := env.Now().Sub(began); took < time.Hour || took > time.Hour+3*time.Second {
		t.Errorf("got duration %v", took)
	}
}

func TestClient_virtualTimeIsAfterRealTime_works(t *testing.T) {
	t.Parallel()
	var env *perduretest.Env
	r := registry()
	perdure.AddActivity(r, "delegate", func(ctx context.Context, d time.Duration) (string, error) {
		return env.Client().Start(ctx, "sleep", d, client.WithInstanceID("from within"))
	})
	perdure.AddOrchestration(r, "boss", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		return perdure.CallActivityByName[string](ctx, "delegate", d).Await(ctx)
	})
	env = perduretest.New(t, r)
	const year = 365 * 24 * time.Hour
	env.Advance(40 * year)
	if got := result(t, env, start(t, env, "boss", time.Hour)); got != "from within" {
		t.Errorf("got %q", got)
	}
	if got := result(t, env, "from within"); got != "slept" {
		t.Errorf("got %q", got)
	}
}
