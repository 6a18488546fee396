package perduretest_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// faultyCode is code with one fault.
type faultyCode struct {
	kind    perduretest.Fault
	body    func(ctx *perdure.OrchestrationContext) error
	work    func(context.Context) error
	failure string // the message of the failed test
}

func neverReturns(context.Context) error {
	<-make(chan int)
	return nil
}

// faulty has code for each fault.
var faulty = map[string]faultyCode{
	"nondeterminism": {
		kind: perduretest.Nondeterminism,
		body: func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "work", rand.Int64()).Await(ctx)
			return err
		},
		failure: "nondeterminism in instance",
	},
	"hang": {
		kind: perduretest.Hang,
		body: func(*perdure.OrchestrationContext) error {
			<-make(chan int)
			return nil
		},
		failure: "orchestration hangs: it blocks on something other than a future or never ends, in",
	},
	"foreign goroutine": {
		kind: perduretest.ForeignGoroutine,
		body: func(ctx *perdure.OrchestrationContext) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				ctx.SetCustomStatus("called")
			}()
			<-done
			return nil
		},
		failure: "orchestration context or future used on another goroutine, in",
	},
	"foreign goroutine that the orchestration waits for": {
		kind: perduretest.ForeignGoroutine,
		body: func(ctx *perdure.OrchestrationContext) error {
			done := make(chan struct{})
			go func() {
				ctx.SetCustomStatus("called")
				close(done)
			}()
			<-done
			return nil
		},
		failure: "orchestration context or future used on another goroutine, in",
	},
	"foreign goroutine after the turn": {
		kind: perduretest.ForeignGoroutine,
		body: func(ctx *perdure.OrchestrationContext) error {
			go func() {
				time.Sleep(time.Minute)
				ctx.SetCustomStatus("lost")
			}()
			return perdure.Sleep(ctx, time.Hour)
		},
		failure: "used on another goroutine after its turn had ended, so that its calls are lost, in",
	},
	"activity that ignores its context": {
		kind: perduretest.GoroutineLeak,
		body: func(ctx *perdure.OrchestrationContext) error {
			ctx, cancel := perdure.WithTimeout(ctx, time.Minute)
			defer cancel()
			_ = callWork(ctx)
			return perdure.Sleep(perdure.WithoutCancel(ctx), time.Hour)
		},
		work: func(context.Context) error {
			time.Sleep(30 * time.Minute)
			return nil
		},
		failure: `" ignores its cancelled context, in`,
	},
	"inline activity that ignores its context": {
		kind: perduretest.GoroutineLeak,
		body: func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "work", nil, perdure.Inline()).Await(ctx)
			return err
		},
		work: func(context.Context) error {
			time.Sleep(time.Minute)
			return nil
		},
		failure: `" ignores its cancelled context, in`,
	},
	"goroutine of an activity": {
		kind: perduretest.GoroutineLeak,
		body: callWork,
		work: func(context.Context) error {
			go func() { _ = neverReturns(context.Background()) }()
			return nil
		},
		failure: "goroutines are still running after the test",
	},
	"activity that never returns": {
		kind:    perduretest.GoroutineLeak,
		body:    callWork,
		work:    neverReturns,
		failure: "still running after the test, 24h0m0s after the end of its context",
	},
}

// run runs the code for two hours of virtual time.
func (c *faultyCode) run(t *testing.T, expected []perduretest.Fault, opts ...perduretest.Option) {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "faulty", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return 0, c.body(ctx)
	})
	perdure.AddActivity(r, "work", func(ctx context.Context, _ any) (int, error) {
		if c.work == nil {
			return 0, nil
		}
		return 0, c.work(ctx)
	})
	env := perduretest.New(t, r, opts...)
	env.Expect(expected...)
	start(t, env, "faulty", nil)
	env.Advance(2 * time.Hour)
}

func TestFault_withoutExpect_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, code := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				code.run(t, nil)
			}, code.failure)
		})
	}
}

func TestExpect_faultHappens_passes(t *testing.T) {
	t.Parallel()
	for name, code := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code.run(t, []perduretest.Fault{code.kind})
		})
	}
}

func TestExpect_faultDoesNotHappen_failsTheTest(t *testing.T) {
	t.Parallel()
	correct := faultyCode{body: callWork}
	for name, code := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				correct.run(t, []perduretest.Fault{code.kind})
			}, `expected faults did not happen: ["`+string(code.kind)+`"]`)
		})
	}
}

func TestExpect_anotherFaultHappens_failsTheTest(t *testing.T) {
	t.Parallel()
	code := faulty["hang"]
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		code.run(t, []perduretest.Fault{perduretest.Nondeterminism})
	}, code.failure)
}

func TestExpect_hang_leavesTheInstanceBlocked(t *testing.T) {
	t.Parallel()
	code := faulty["hang"]
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "faulty", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return 0, code.body(ctx)
	})
	env := perduretest.New(t, r)
	env.Expect(perduretest.Hang)
	id := start(t, env, "faulty", nil)
	env.Advance(time.Hour)
	if s, err := env.Client().Status(t.Context(), id); err != nil || s.Status != client.StatusBlocked {
		t.Errorf("got status %v, error %v", s.Status, err)
	}
}

func TestExpect_nondeterminismAfterDeploy_isObserved(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	env.Expect(perduretest.Nondeterminism)
	start(t, env, "sleep", time.Hour)
	changed := perdure.NewRegistry()
	perdure.AddOrchestration(changed, "sleep",
		func(ctx *perdure.OrchestrationContext, _ time.Duration) (string, error) {
			return perdure.CallActivityByName[string](ctx, "nap", nil).Await(ctx)
		})
	env.Deploy(changed)
	env.Advance(2 * time.Hour)
}

func TestExpect_unknownFault_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		perduretest.New(t, registry()).Expect("leak")
	}, `Expect: unknown fault "leak"; want one of ["nondeterminism" "hang" "foreign goroutine" "goroutine leak"]`)
}

func TestWithoutFaultCheck_fault_passes(t *testing.T) {
	t.Parallel()
	for name, code := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code.run(t, nil, perduretest.WithoutFaultCheck(code.kind))
		})
	}
}

func TestWithoutFaultCheck_noFault_passes(t *testing.T) {
	t.Parallel()
	correct := faultyCode{body: callWork}
	correct.run(t, nil, perduretest.WithoutFaultCheck(
		perduretest.Nondeterminism, perduretest.Hang, perduretest.ForeignGoroutine, perduretest.GoroutineLeak))
}

func TestWithoutFaultCheck_unknownFault_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		perduretest.New(t, registry(), perduretest.WithoutFaultCheck("leak"))
	}, `WithoutFaultCheck: unknown fault "leak"`)
}
