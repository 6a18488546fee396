package perduretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest"
)

// served is a hub that runs in real time, as a deployed one does, until the test ends.
func served(t *testing.T, r *perdure.Registry) *simhub.Hub {
	t.Helper()
	hub, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		hub.Cloud.Serve(ctx)
	}()
	t.Cleanup(func() {
		hub.Close()
		stop()
		<-over
	})
	return hub
}

// approve is the body of a test: the same for a hub in virtual time, and for one that is deployed.
func approve(t *testing.T, env *perduretest.Env) (id string) {
	t.Helper()
	id = start(t, env, "approve", nil)
	env.At(20*time.Millisecond, func() { raise(t, env, id, "go", 1) })
	if got := result(t, env, id); got != "v1" {
		t.Errorf("got %q", got)
	}
	if len(env.History(id)) == 0 {
		t.Error("it has no history")
	}
	return id
}

func TestOneBodyInVirtualTimeAndInADeployedHub(t *testing.T) {
	t.Parallel()
	t.Run("virtual", func(t *testing.T) { approve(t, perduretest.New(t, approved("v1"))) })
	hub := served(t, approved("v1"))
	ids := []string{}
	t.Run("deployed", func(t *testing.T) {
		env := perduretest.Deployed(t, hub.Provider)
		ids = append(ids, approve(t, env), start(t, env, "approve", nil))
		began := env.Now()
		env.Advance(10 * time.Millisecond)
		if took := env.Now().Sub(began); took < 10*time.Millisecond {
			t.Errorf("it advanced by %v", took)
		}
	})
	for _, id := range ids { // one was over, the other waited
		if _, err := client.New(hub.Provider).Status(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the test has left %s: %v", id, err)
		}
	}
}

func TestAWaitInADeployedHubSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	env := perduretest.Deployed(t, served(t, approved("v1")).Provider, perduretest.WithPatience(time.Second))
	_, err := env.Client().Wait(t.Context(), start(t, env, "approve", nil))
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || idle.Waited == 0 || len(idle.Waits) != 1 || !strings.Contains(idle.Waits[0], `the external event "go", which nobody has raised`) {
		t.Errorf("%v", err)
	}
}

func TestWhatOnlyVirtualTimeHasFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(env *perduretest.Env){
		"Stub":         func(env *perduretest.Env) { env.Stub("v1") },
		"Calls":        func(env *perduretest.Env) { env.Calls() },
		"RunUntilIdle": (*perduretest.Env).RunUntilIdle,
		"Deploy":       func(env *perduretest.Env) { env.Deploy(approved("v2")) },
		"CrashAt":      func(env *perduretest.Env) { env.CrashAt(1) },
		"Outage":       func(env *perduretest.Env) { env.Outage(perduretest.SQS, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				do(perduretest.Deployed(t, served(t, approved("v1")).Provider))
			}, name+" is not for a deployed hub")
		})
	}
}
