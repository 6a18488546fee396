package perduretest_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/perduretest"
)

// runs starts an orchestration with a body and, if there is one, an activity "work", and waits for its end.
func runs(body func(ctx *perdure.OrchestrationContext) error, work func(context.Context) error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "hangs", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
			return 0, body(ctx)
		})
		if work != nil {
			perdure.AddActivity(r, "work", func(ctx context.Context, _ struct{}) (int, error) { return 0, work(ctx) })
		}
		env := perduretest.New(t, r, perduretest.WithHangTimeout(3*time.Second))
		id := start(t, env, "hangs", nil)
		if _, err := env.Client().Wait(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

func callWork(ctx *perdure.OrchestrationContext) error {
	_, err := perdure.CallActivityByName[int](ctx, "work", nil).Await(ctx)
	return err
}

var elsewhere = make(chan int) // created outside of all bubbles

func TestHangTimeout_orchestrationHangs_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     func(ctx *perdure.OrchestrationContext) error
		mentions []string
	}{
		"mutex": {func(*perdure.OrchestrationContext) error {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
			return nil
		}, []string{"an orchestration waits for a mutex", "hangs_test.go"}},
		"channel of the package": {func(*perdure.OrchestrationContext) error {
			<-elsewhere
			return nil
		}, []string{"an orchestration waits to receive from a channel", "hangs_test.go"}},
		"channel of its own": {func(*perdure.OrchestrationContext) error {
			<-make(chan int)
			return nil
		}, []string{"orchestration hangs: it blocks on something other than a future or never ends", "hangs_test.go"}},
		"loop": {func(*perdure.OrchestrationContext) error {
			for n := 0; ; n++ {
				if n < 0 {
					return nil
				}
			}
		}, []string{"an orchestration computes", "hangs_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, runs(c.body, nil), c.mentions...)
		})
	}
}

func TestHangTimeout_activityHangs_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work     func(context.Context) error
		mentions []string
	}{
		"mutex": {func(context.Context) error {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
			return nil
		}, []string{"an activity waits for a mutex", "hangs_test.go", `activity "work" of instance`}},
		"channel": {func(context.Context) error {
			<-make(chan int)
			return nil
		}, []string{`activity "work", which has been running for 3h`, "hangs_test.go"}},
		"sleep": {func(context.Context) error {
			for {
				time.Sleep(time.Hour)
			}
		}, []string{`activity "work", which has been running for 3h`, "hangs_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, runs(callWork, c.work), c.mentions...)
		})
	}
}

// Code that hangs after the end of its test still fails the test.
func TestHangTimeout_activityHangsAfterTheTest_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(){
		"mutex": func() {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
		},
		"channel": func() { <-make(chan int) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				r := perdure.NewRegistry()
				perdure.AddOrchestration(r, "hangs", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
					return 0, callWork(ctx)
				})
				perdure.AddActivity(r, "work", func(ctx context.Context, _ struct{}) (int, error) {
					<-ctx.Done()
					last()
					return 0, nil
				})
				env := perduretest.New(t, r, perduretest.WithHangTimeout(3*time.Second))
				start(t, env, "hangs", nil)
				env.Advance(time.Minute)
			}, `activity "work" of instance`, "hangs_test.go")
		})
	}
}

// A goroutine that an activity has leaked is detected when the test ends.
func TestGoroutineLeak_goroutineOfAnActivity_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, runs(callWork, func(context.Context) error {
		go func() { <-make(chan int) }()
		return nil
	}), "goroutines are still running after the test", "a goroutine waits to receive from a channel", "hangs_test.go")
}

// Bubbles cannot be nested.
func TestNew_insideSynctestBubble_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { perduretest.New(t, registry()) })
	}, "outside of synctest.Test")
}

// A cancelled activity that continues is detected after the grace period.
func TestGoroutineLeak_activityIgnoresCancellation_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, runs(func(ctx *perdure.OrchestrationContext) error {
		ctx, cancel := perdure.WithTimeout(ctx, time.Minute)
		defer cancel()
		_ = callWork(ctx)
		return perdure.Sleep(perdure.WithoutCancel(ctx), time.Hour)
	}, func(context.Context) error {
		time.Sleep(30 * time.Minute)
		return nil
	}), `activity "work" of instance`, "ignores its cancelled context", "hangs_test.go")
}

// Every turn replays the history, so nondeterminism is detected immediately.
func TestNondeterminism_randomNumberOrMapOrder_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(ctx *perdure.OrchestrationContext) error{
		"chance": func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "work", rand.Int64()).Await(ctx)
			return err
		},
		"map": func(ctx *perdure.OrchestrationContext) error {
			var fs []perdure.Awaitable
			for name := range map[int]bool{
				1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true,
			} {
				fs = append(fs, perdure.CallActivityByName[int](ctx, "work", name))
			}
			return perdure.WhenAll(ctx, fs...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				r := perdure.NewRegistry()
				perdure.AddOrchestration(r, "bad", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
					return 0, body(ctx)
				})
				env := perduretest.New(t, r)
				env.Stub("work").Returns(1)
				start(t, env, "bad", nil)
				env.Advance(time.Hour)
			}, "nondeterminism in instance", `ActivityScheduled "work" with the input`)
		})
	}
}

// The engine replays twice if the history may have been stale. Code that matches only the second time is still
// nondeterministic.
func TestNondeterminism_secondReplayMatches_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		runs := 0
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "bad", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
			runs++
			if runs == 2 {
				return perdure.CallActivityByName[int](ctx, "other", nil).Await(ctx)
			}
			return perdure.CallActivityByName[int](ctx, "work", nil).Await(ctx)
		})
		env := perduretest.New(t, r)
		env.Stub("work").Returns(1)
		start(t, env, "bad", nil)
		env.Advance(time.Hour)
	}, "nondeterminism in instance",
		`history has ActivityScheduled "work", the code requested ActivityScheduled "other"`)
}

// The hang timeout of the Env ends an endless loop, whether or not virtual time advances.
func TestWait_endlessLoop_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     func(ctx *perdure.OrchestrationContext) error
		mentions []string
	}{
		"retries": {func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "work", nil,
				perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
			return err
		}, []string{
			`" is Running and is in an endless loop: no progress after `, "of virtual time",
			`activity "work", which has failed `, " times, last at ", ": out of stock; attempt ", " is due at ",
		}},
		"rounds": {func(ctx *perdure.OrchestrationContext) error {
			if err := perdure.Sleep(ctx, time.Hour); err != nil {
				return err
			}
			_, err := perdure.ContinueAsNew[int](ctx, struct{}{})
			return err
		}, []string{
			`" is Running and is in an endless loop: no progress after `, " executions (continued as new)",
			"timer, due at",
		}},
		"calls at one moment": {func(ctx *perdure.OrchestrationContext) error {
			for {
				_, _ = perdure.CallActivityByName[int](ctx, "work", nil).Await(ctx)
			}
		}, []string{
			"endless loop: virtual time has not advanced from 2000-01-01", `of orchestration "hangs" is Running: `,
			" turns", "hangs_test.go",
		}},
		"rounds at one moment": {func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.ContinueAsNew[int](ctx, struct{}{})
			return err
		}, []string{
			"endless loop: virtual time has not advanced from", `of orchestration "hangs" is `,
			" executions (continued as new)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := wantFailure(t, runs(c.body, func(context.Context) error {
				return errors.New("out of stock")
			}), c.mentions...)
			for _, text := range []string{"dynamo/commit.go", "code hangs", "after the test"} {
				if strings.Contains(out, text) {
					t.Errorf("got %q in output:\n%s", text, out)
				}
			}
		})
	}
}

// An instance that keeps recording events may run for half of the remaining -timeout of go test, so that the next tests
// can run.
func TestWait_halfOfTheGoTestTimeoutHasPassed_failsTheTest(t *testing.T) {
	t.Parallel()
	wantWithin(t, 8*time.Second, func(t *testing.T) {
		t.Helper()
		env := perduretest.New(t, counts(), perduretest.WithHangTimeout(time.Second))
		if _, err := env.Client().Wait(t.Context(), start(t, env, "counts", count{To: math.MaxInt})); err != nil {
			t.Error(err)
		}
	}, "half of the remaining -timeout of go test", `of orchestration "counts" is Running: `,
		" executions (continued as new)",
		"--- FAIL: "+t.Name()+"/bad", "--- PASS: "+t.Name()+"/the_next_test")
}

// The same limit applies to Advance.
func TestAdvance_halfOfTheGoTestTimeoutHasPassed_failsTheTest(t *testing.T) {
	t.Parallel()
	wantWithin(t, 8*time.Second, func(t *testing.T) {
		t.Helper()
		env := perduretest.New(t, counts(), perduretest.WithHangTimeout(2*time.Second))
		start(t, env, "counts", count{To: math.MaxInt, Every: time.Second})
		env.Advance(50 * 365 * 24 * time.Hour)
	}, "half of the remaining -timeout of go test, at the virtual time 2000-01-",
		`of orchestration "counts" is Running: `,
		"--- FAIL: "+t.Name()+"/bad", "--- PASS: "+t.Name()+"/the_next_test")
}

// While an activity runs, virtual time advances without turns. The test is slow, but no code hangs.
func TestAdvance_whileActivityRunsForDays_isReportedAsSlow(t *testing.T) {
	t.Parallel()
	wantWithin(t, 8*time.Second, func(t *testing.T) {
		t.Helper()
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "ship", func(ctx *perdure.OrchestrationContext, _ any) (string, error) {
			return perdure.CallActivityByName[string](ctx, "pack", nil).Await(ctx)
		})
		env := perduretest.New(t, r, perduretest.WithHangTimeout(6*time.Second))
		env.Stub("pack").Takes(30 * time.Hour).Returns("bag")
		start(t, env, "ship", nil)
		env.Advance(365 * 24 * time.Hour)
	}, "half of the remaining -timeout of go test, at the virtual time 2000-01-",
		`(running: activity "pack" of instance `,
		"--- FAIL: "+t.Name()+"/bad", "--- PASS: "+t.Name()+"/the_next_test")
}

func TestWait_hundredYearsOfVirtualTime_returnsIdleError(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, counts())
	_, err := env.Client().Wait(t.Context(), start(t, env, "counts", count{
		To: math.MaxInt, Every: 365 * 24 * time.Hour,
	}))
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok ||
		!strings.Contains(idle.LoopDiagnosis, "is still active after") ||
		!strings.Contains(idle.LoopDiagnosis, "days of virtual time") {
		t.Errorf("got error %v", err)
	}
	if _, err := env.Client().Wait(t.Context(),
		start(t, env, "counts", count{To: 1, Every: 60 * 365 * 24 * time.Hour})); err != nil {
		t.Errorf("timer far in the future: got error %v", err)
	}
}

// count is the state of a counting orchestration.
type count struct {
	N, To int
	Every time.Duration
	Slow  bool // each round calls an activity that takes real time
}

// counts returns a registry whose orchestration continues as new with a different input each time.
func counts() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "slow", func(context.Context, struct{}) (int, error) {
		time.Sleep(5 * time.Millisecond) // real time, for an activity of WithNetwork
		return 0, nil
	})
	perdure.AddOrchestration(r, "counts", func(ctx *perdure.OrchestrationContext, c count) (int, error) {
		if c.N == c.To {
			return c.N, nil
		}
		if c.Slow {
			if _, err := perdure.CallActivityByName[int](ctx, "slow", nil).Await(ctx); err != nil {
				return 0, err
			}
		}
		if err := perdure.Sleep(ctx, cmp.Or(c.Every, time.Hour)); err != nil {
			return 0, err
		}
		c.N++
		return perdure.ContinueAsNew[int](ctx, c)
	})
	return r
}

// The orchestration takes five seconds of real time, or half of that in a short run. The hang timeout is two seconds.
func TestHangTimeout_longInstanceMakesProgress_completes(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(t *testing.T, env *perduretest.Env, id string){
		"Wait": func(t *testing.T, env *perduretest.Env, id string) {
			t.Helper()
			if _, err := env.Client().Wait(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		},
		"Advance": func(_ *testing.T, env *perduretest.Env, _ string) { env.Advance(1000 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, counts(), perduretest.WithHangTimeout(2*time.Second),
				perduretest.WithNetwork("slow"))
			to := shortrun.Few(500, 1000)
			id := start(t, env, "counts", count{To: to, Slow: true})
			wait(t, env, id)
			if s, err := env.Client().Status(t.Context(), id); err != nil || string(s.Output) != strconv.Itoa(to) {
				t.Errorf("got %s, output %s, error %v", s.Status, s.Output, err)
			}
		})
	}
}

// A function of AfterFunc ends the retries, so Wait does not report an endless loop.
func TestHangTimeout_retriesUntilAfterFunc_completes(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "slow", func(context.Context, struct{}) (int, error) {
		time.Sleep(2 * time.Millisecond)
		if !open.Load() {
			return 0, errors.New("closed")
		}
		return 7, nil
	})
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return perdure.CallActivityByName[int](ctx, "slow", nil,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour})).Await(ctx)
	})
	env := perduretest.New(t, r, perduretest.WithHangTimeout(2*time.Second), perduretest.WithNetwork("slow"))
	id := start(t, env, "tries", nil)
	env.AfterFunc(1500*time.Hour, func() { open.Store(true) })
	if s, err := env.Client().Wait(t.Context(), id); err != nil || string(s.Output) != "7" {
		t.Errorf("got output %s, error %v", s.Output, err)
	}
}
