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

// stride is the distance between the calls at which a scenario with hundreds of calls crashes. The distance is a prime,
// so that the crashes cover all calls of a repeated pattern. Short scenarios crash at each call, or at every 17th call
// in a short run.
const (
	stride         = 41
	strideShortRun = 17
)

// A process crashes before and after its n-th AWS call, for every n, or for every 41st n in long scenarios. The
// instance ends as without a crash, all histories are valid logs, all instances have ended, and no message or schedule
// remains.
func TestEngine_processCrashesAtAnyCall_scenariosSucceed(t *testing.T) {
	t.Parallel()
	atEveryCall(t, simhub.CrashAt)
}

// A call fails or loses its response, and the process continues.
func TestEngine_callFailsOrLosesItsResponse_scenariosSucceed(t *testing.T) {
	t.Parallel()
	atEveryCall(t, simhub.FailAt)
}

// fault returns an interceptor that injects a fault before or after the n-th call of the functions.
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

// survives runs a scenario with a fault at the n-th call. It reports whether the n-th call happened.
func survives(t *testing.T, s scenarios.Scenario, f fault, n int64, after bool) bool {
	t.Helper()
	intercept, calls := f(n, after)
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		scenarios.Register(r, s)
		// otherwise most calls are polls
		o := simhub.Options{
			Tasks: &simhub.TaskMonitor{}, Registry: r, Exclusive: true, Environments: 2, Bucket: s.Large,
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
			t.Errorf("crash at call %d: %v", n, err)
		}
	})
	return calls.Load() >= n
}

// A fault occurs at each call while one build blocks an instance and the next build fixes it.
func TestEngine_crashWhileBlocked_recoversWithFixedBuild(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"crash": simhub.CrashAt, "lost": simhub.FailAt} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", name, after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); survivesBlocking(t, f, n, after) && !t.Failed(); n += shortrun.Step(strideShortRun) {
				}
			})
		}
	}
}

// survivesBlocking blocks and unblocks an instance, with a fault at the n-th call. It reports whether the n-th call
// happened.
func survivesBlocking(t *testing.T, f fault, n int64, after bool) bool {
	t.Helper()
	intercept, calls := f(n, after)
	before := []step{inc("Echo"), event("go"), inc()}
	withFault(t, code(before), intercept, func(_ context.Context, h *hub) {
		h.start("i", "Code", 0)
		h.serve(30 * time.Minute)
		h.deploy(code([]step{inc(), event("go"), inc()}), "changed")
		h.raiseGo("i", 1)
		h.serve(time.Hour)
		bothSides(t, h.blocked("i"), `ActivityScheduled "Echo"`,
			`nothing and waits for ActivityScheduled "Inc" #3`)
		h.deploy(code(before), "as before")
		h.serve(4 * time.Hour)
		h.completed("i", `"done"`)
	})
	if t.Failed() {
		t.Logf("crash at call %d", n)
	}
	return calls.Load() >= n
}

// longest is the time limit of a scenario. toRest is the time for the hub to become idle afterwards: longer than any
// visibility timeout, delay or timer.
const longest, toRest = 7 * 24 * time.Hour, 6 * time.Hour

// stale is the number of recent writes that an eventually consistent read may miss.
const stale = 3

// onHub runs a scenario until the hub is idle, and checks the result of the scenario.
func onHub(ctx context.Context, h *simhub.Hub, s scenarios.Scenario) error {
	// The client polls rarely, because a poll costs as much as a turn in real time.
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
	return errors.Join(err, h.CheckIdle(ctx))
}

const instanceID = "i-1"

// drive runs the client part of the scenario, and waits for the end of the instance.
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
