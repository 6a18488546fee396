package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/scenarios"
)

// stride is between the calls at which a scenario of hundreds of calls crashes. It is a prime, so that the calls of a
// repeated pattern all have their turn. A short scenario of the same kind crashes at each call, or at every 17th in a
// short run.
const (
	stride         = 41
	strideShortRun = 17
)

// TestEngineCrash kills a function's process before and after its n-th AWS call, for every n there is (of long
// scenarios, as their names say, every 41st): the instance ends as without a crash, the histories of all executions of
// all instances are valid logs, all instances are over, and no message or schedule is left.
func TestEngineCrash(t *testing.T) {
	t.Parallel()
	atEveryCall(t, simhub.CrashAt)
}

// TestEngineLostCalls is the same of calls that fail, or whose response is lost, in a process that lives on.
func TestEngineLostCalls(t *testing.T) {
	t.Parallel()
	atEveryCall(t, simhub.FailAt)
}

// fault makes an interceptor that does harm at the n-th call of the functions, before or after it.
type fault func(n int64, after bool) (intercept simaws.Interceptor, calls *atomic.Int64)

func atEveryCall(t *testing.T, f fault) {
	t.Helper()
	for _, s := range scenarios.All(tick) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []bool{false, true} {
				step := shortrun.Step(strideShortRun)
				if s.Long {
					step *= stride
				}
				t.Run(fmt.Sprintf("after=%v,every=%d", after, step), func(t *testing.T) {
					t.Parallel()
					for n := int64(1); survives(t, named(t, s.Name), f, n, after) && !t.Failed(); n += step {
					}
				})
			}
		})
	}
}

// survives runs a scenario with a fault at the n-th call, and reports whether there was such a call.
func survives(t *testing.T, s scenarios.Scenario, f fault, n int64, after bool) bool {
	t.Helper()
	intercept, calls := f(n, after)
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		scenarios.Register(r, s)
		// else most calls were polls
		o := simhub.Options{
			Tasks: &simhub.TaskWitness{}, Registry: r, Exclusive: true, Environments: 2, Bucket: s.Large,
			Intercept: intercept, CancelPollInterval: time.Hour, LeaseAfter: time.Hour,
		}
		if testing.Verbose() {
			o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
		}
		h, err := simhub.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := onHub(t.Context(), h, s); err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	})
	return calls.Load() >= n
}

// TestBlockedCrash does the same to an instance that is blocked by a build, and mended by the next.
func TestBlockedCrash(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"crash": simhub.CrashAt, "lost": simhub.FailAt} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", name, after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); mends(t, f, n, after) && !t.Failed(); n += shortrun.Step(strideShortRun) {
				}
			})
		}
	}
}

// mends blocks an instance and mends it, with a fault at the n-th call, and reports whether there was such a call.
func mends(t *testing.T, f fault, n int64, after bool) bool {
	t.Helper()
	intercept, calls := f(n, after)
	before := []step{inc("Echo"), event("go"), inc()}
	withFault(t, code(before), intercept, func(_ context.Context, h *hub) {
		h.start("i", "Code", 0)
		h.serve(30 * time.Minute)
		h.deploy(code([]step{inc(), event("go"), inc()}), "changed")
		h.tell("i", 1)
		h.serve(time.Hour)
		bothSides(t, h.blocked("i"), `ActivityScheduled "Echo"`,
			`nothing more: it waits for ActivityScheduled "Inc" #3`)
		h.deploy(code(before), "as before")
		h.serve(4 * time.Hour)
		h.completed("i", `"done"`)
	})
	if t.Failed() {
		t.Logf("call %d", n)
	}
	return calls.Load() >= n
}

// longest is what a scenario may take; toRest is how long the hub is given then to come to rest: more than any
// visibility, delay or timer.
const longest, toRest = 7 * 24 * time.Hour, 6 * time.Hour

// stale is by how many writes an eventually consistent read may be behind.
const stale = 3

// onHub carries a scenario to its end, and the hub to rest.
func onHub(ctx context.Context, h *simhub.Hub, s scenarios.Scenario) error {
	// A look costs as much as a turn, and there is time.
	c := client.New(h.Provider, client.WithQuerier(h),
		client.WithSleep(func(ctx context.Context, _ time.Duration) error {
			time.Sleep(10 * tick)
			return ctx.Err()
		}))
	scenarios.Hold(c, s)
	h.Cloud.Table.Lag(stale)
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, longest)
		defer cancel()
		ended <- drive(ctx, c, s)
		time.Sleep(toRest)
		stop()
	}()
	h.ServeFor(serving, 2*longest)
	if err := <-ended; err != nil {
		return err
	}
	status, err := c.Status(ctx, instanceID)
	if err == nil {
		err = s.Check(ctx, c, status)
	}
	return errors.Join(err, h.CheckRest(ctx))
}

const instanceID = "i-1"

// drive does what the scenario's client does, and waits for the end.
func drive(ctx context.Context, c *client.Client, s scenarios.Scenario) error {
	id, err := c.Start(ctx, s.Name, s.Input, append(s.Start, client.WithInstanceID(instanceID))...)
	if err == nil && s.Drive != nil {
		err = s.Drive(ctx, scenarios.World{Client: c, Tick: tick, Pass: time.Sleep}, id)
	}
	if err == nil {
		_, err = c.Wait(ctx, id)
	}
	return err
}
