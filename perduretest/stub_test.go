package perduretest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

type payment struct{ Cents int }

type receipt struct{ Number string }

// shop returns a registry whose orchestration calls "charge" and "pack". Only "charge" is registered.
func shop() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(_ context.Context, p payment) (receipt, error) {
		return receipt{fmt.Sprint("real ", p.Cents)}, nil
	})
	pack := perdure.DefineActivity[receipt, string]("pack", perdure.OnQueue("warehouse"))
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, cents int) (string, error) {
		retried := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute, BackoffCoefficient: 1})
		paid, err := perdure.CallActivityByName[receipt](ctx, "charge", payment{cents}, retried).Await(ctx)
		if err != nil {
			return "", err
		}
		parcel, err := pack.Call(ctx, paid).Await(ctx)
		return parcel + " for " + paid.Number, err
	})
	return r
}

// result waits for an instance and returns its output.
func result(t *testing.T, env *perduretest.Env, id string) string {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Result[string](s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStub_failsReturnsAndTakes_recordCalls(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, shop())
	env.Stub("charge").Fails(2, errors.New("declined")).Returns(receipt{"1"})
	env.Stub("pack", perdure.OnQueue("warehouse")).Takes(time.Hour).Returns("box", "bag")
	id := start(t, env, "order", 900)
	if got := result(t, env, id); got != "box for 1" {
		t.Errorf("got %q", got)
	}
	if got := result(t, env, start(t, env, "order", 100)); got != "bag for 1" {
		t.Errorf("second order: got %q", got)
	}

	var lines []string
	for _, c := range env.Calls() {
		if c.InstanceID == id {
			lines = append(lines,
				fmt.Sprintf("%s(%s) attempt %d at %v took %v: %s%s", c.Activity, c.Input, c.Attempt, c.StartedAt,
					c.Duration, c.Output, c.Error))
		}
	}
	want := []string{
		`charge({"Cents":900}) attempt 1 at 0s took 0s: declined`,
		`charge({"Cents":900}) attempt 2 at 1m0s took 0s: declined`,
		`charge({"Cents":900}) attempt 3 at 2m0s took 0s: {"Number":"1"}`,
		`pack({"Number":"1"}) attempt 1 at 2m0s took 1h0m0s: "box"`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if calls := env.Calls("charge"); len(calls) != 4 {
		t.Errorf("got %d calls of charge", len(calls))
	} else if p, err := perduretest.CallInput[payment](calls[3]); err != nil || p.Cents != 100 {
		t.Errorf("got %+v, error %v", p, err)
	}
}

// After the failures of a stub, the registered activity runs.
func TestStub_onlyFails_registeredActivityRunsNext(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, shop())
	env.Stub("charge").Fails(1, errors.New("declined"))
	perduretest.StubFunc(env, "pack", func(_ context.Context, r receipt) (string, error) {
		return "box of " + r.Number, nil
	},
		perdure.OnQueue("warehouse"))
	if got := result(t, env, start(t, env, "order", 5)); got != "box of real 5 for real 5" {
		t.Errorf("got %q", got)
	}
}

// Results and errors of a stub are encoded like those of an activity.
func TestStub_nonRetryableError_failsTheInstanceWithoutRetry(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, shop())
	env.Stub("charge").Fails(1, perdure.NonRetryable(errors.New("stolen card")))
	s, err := env.Client().Wait(t.Context(), start(t, env, "order", 5))
	if err != nil || s.Status != client.StatusFailed || !strings.Contains(s.Failure.Message, "stolen card") ||
		len(env.Calls("charge")) != 1 {
		t.Errorf("got %s, %+v, error %v, %d calls", s.Status, s.Failure, err, len(env.Calls("charge")))
	}
}

// A stub with Takes ends with its context and returns its cause.
func TestStub_cancelledDuringTakes_returnsTheCause(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "impatient", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		ctx, cancel := perdure.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := perdure.CallActivityByName[int](ctx, "slow", nil, perdure.WaitForCancellation()).Await(ctx)
		return fmt.Sprint(err != nil), nil
	})
	env := perduretest.New(t, r)
	env.Stub("slow").Takes(time.Hour).Returns(1)
	if got := result(t, env, start(t, env, "impatient", nil)); got != "true" {
		t.Errorf("got %q", got)
	}
	env.Advance(time.Minute)
	if calls := env.Calls(); len(calls) != 1 || calls[0].Running || calls[0].Duration < time.Minute ||
		calls[0].Duration > 2*time.Minute || calls[0].Error != "timeout" {
		t.Errorf("got %+v", calls)
	}
}

func TestCalls_activityIsRunning_isListed(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, shop())
	env.Stub("charge").Takes(time.Hour).Returns(receipt{"1"})
	start(t, env, "order", 1)
	env.Advance(20 * time.Minute)
	if calls := env.Calls(); len(calls) != 1 || !calls[0].Running || calls[0].Duration != 20*time.Minute {
		t.Errorf("got %+v", calls)
	}
}

func TestStub_invalidStep_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stub     func(env *perduretest.Env)
		mentions string
	}{
		"a result of another type": {func(env *perduretest.Env) {
			env.Stub("charge").Returns(map[string]int{"Sum": 3})
		}, `stub of activity "charge" cannot return`},
		"no error": {func(env *perduretest.Env) {
			env.Stub("charge").Fails(1, nil)
		}, "Fails requires an error"},
		"nothing left to do": {func(env *perduretest.Env) {
			env.Stub("pack", perdure.OnQueue("warehouse"))
		}, `stub of activity "pack" has no more steps`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				env := perduretest.New(t, shop())
				c.stub(env)
				start(t, env, "order", 1)
				env.Advance(time.Hour)
			}, c.mentions)
		})
	}
}

// Inline activities and their stubs run inside the turn. A stub that takes too long moves to the worker.
func TestStub_inlineActivity_runsInTheTurn(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "quote", func(context.Context, int) (int, error) {
		return 0, errors.New("it has no stub")
	}, perdure.Inline())
	perdure.AddOrchestration(r, "offer", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		v, err := perdure.CallActivityByName[int](ctx, "quote", n).Await(ctx)
		return fmt.Sprint(v), err
	})
	for _, c := range []struct {
		takes time.Duration
		calls int
	}{{0, 1}, {time.Second, 1}, {5 * time.Second, 2}} {
		env := perduretest.New(t, r)
		env.Stub("quote").Takes(c.takes).Returns(10)
		id, err := env.Client().Start(t.Context(), "offer", 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := result(t, env, id); got != "10" || len(env.Calls("quote")) != c.calls {
			t.Errorf("duration %v: got %s after %+v", c.takes, got, env.Calls("quote"))
		}
		if e := env.History(id)[2]; !e.Inline {
			t.Errorf("%s: not marked as inline", e.String())
		}
	}
}

// A stub with a misspelled name has no effect, and the activity's own code runs. The log of the failed test reports the
// stub.
func TestStub_neverCalled_isLogged(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		env := perduretest.New(t, registry())
		env.Stub("npa").Returns(time.Second)
		if _, err := env.Client().Wait(t.Context(), start(t, env, "naps", []time.Duration{time.Hour})); err != nil {
			t.Fatal(err)
		}
		if env.Now().Hour() > 0 {
			t.Error("got an advanced clock")
		}
	},
		`perduretest: stub of activity "npa" was never called, and the activity is not registered; the registry has "nap"`)
}
