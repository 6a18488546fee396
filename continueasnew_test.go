package perdure_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// continueWith returns the error of ContinueAsNew with the given input.
func continueWith(ctx *perdure.OrchestrationContext, n int) error {
	_, err := perdure.ContinueAsNew[int](ctx, n)
	return err
}

// continuing starts an orchestration whose first execution returns the error of how. A later execution returns its
// input.
func continuing(tb testing.TB, how func(*perdure.OrchestrationContext) error) *world {
	tb.Helper()
	return orchestrate(tb, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n != 1 {
			return n, nil
		}
		return 0, how(ctx)
	})
}

func TestContinueAsNew_returned_startsExecutionWithInput(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		n, err := perdure.CallActivity(ctx, inc, n).Await(ctx)
		if err != nil || n > 3 {
			return fmt.Sprint(n, " ", ctx.InstanceID(), " ", ctx.ExecutionID()), err
		}
		return perdure.ContinueAsNew[string](ctx, n)
	})
	if got := w.run().replayed().output(); got != `"4 order-17 01JEXECUTION3"` {
		t.Error(got)
	}
	const whole = "OrchestrationStarted TurnStarted ActivityScheduled TurnStarted ActivityCompleted " +
		"OrchestrationCompleted"
	if got := kinds(w.history); got != whole || string(w.history[0].Input) != "3" {
		t.Errorf("got events %s, input %s", got, w.history[0].Input)
	}
}

func TestContinueAsNew_unobservedEvents_reachNextExecution(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 1 {
			perdure.WaitForExternalEvent[string](ctx, "e") // receives the first event, which the code does not observe
			if _, err := take(ctx, "go", 1); err != nil {
				return "", err
			}
			return perdure.ContinueAsNew[string](ctx, 2)
		}
		return take(ctx, "e", 4)
	})
	// the first execution ends before the last event arrives
	w.turn(raise("e", "1", `"a"`), raise("e", "2", `"b"`), raise("go", "3", `"now"`), raise("e", "4", `"c"`))
	w.turn(raise("e", "2", `"again"`), raise("e", "4", `"again"`), raise("e", "5", `"d"`))
	if got := w.replayed().output(); got != `"a b c d"` {
		t.Error(got)
	}
}

func TestContinueAsNew_errorWrappedOrJoined_continues(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(*perdure.OrchestrationContext) error{
		"the very error": func(ctx *perdure.OrchestrationContext) error { return continueWith(ctx, 2) },
		"wrapped": func(ctx *perdure.OrchestrationContext) error {
			return fmt.Errorf("a: %w", fmt.Errorf("b: %w", continueWith(ctx, 2)))
		},
		"in a type": func(ctx *perdure.OrchestrationContext) error { return &declinedError{continueWith(ctx, 2)} },
		"marked": func(ctx *perdure.OrchestrationContext) error {
			return perdure.NonRetryable(continueWith(ctx, 2))
		},
		"joined with nothing": func(ctx *perdure.OrchestrationContext) error {
			return errors.Join(nil, continueWith(ctx, 2), nil)
		},
		"joined with itself": func(ctx *perdure.OrchestrationContext) error {
			err := continueWith(ctx, 2)
			return errors.Join(err, fmt.Errorf("again: %w", err))
		},
		"the second of two": func(ctx *perdure.OrchestrationContext) error {
			_ = continueWith(ctx, 3)
			return continueWith(ctx, 2)
		},
		"of a coroutine": func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
				return perdure.ContinueAsNew[int](ctx, 2)
			}).Await(ctx)
			return err
		},
		"set by a deferred call": func(ctx *perdure.OrchestrationContext) (err error) {
			defer func() {
				if r := recover(); r != nil {
					err = continueWith(ctx, 2)
				}
			}()
			panic("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := continuing(t, how)
			if got := w.replayed().output(); got != "2" || w.history[0].Number != 2 {
				t.Errorf("got %s in execution %d", got, w.history[0].Number)
			}
		})
	}
}

func TestContinueAsNew_otherErrorOrInvalidInput_fails(t *testing.T) {
	t.Parallel()
	const another = "perdure: ContinueAsNew: returned together with another error: "
	for name, tt := range map[string]struct {
		how           func(*perdure.OrchestrationContext) error
		kind, message string
		final         bool
	}{
		"joined with a failure": {
			how: func(ctx *perdure.OrchestrationContext) error {
				return errors.Join(continueWith(ctx, 2), &declinedError{})
			},
			kind: "declinedError", message: another + "declined",
		},
		"wrapped with failures": {
			how: func(ctx *perdure.OrchestrationContext) error {
				return fmt.Errorf("all: %w",
					fmt.Errorf("%w, %w, %w", coded{"E1"}, continueWith(ctx, 2), perdure.NonRetryable(coded{"E2"})))
			},
			kind: "E1", message: another + "coded E1\ncoded E2", final: true,
		},
		"two of them": {
			how: func(ctx *perdure.OrchestrationContext) error {
				return errors.Join(continueWith(ctx, 2), continueWith(ctx, 2))
			},
			kind: "error", message: "perdure: ContinueAsNew: errors of several calls returned; return only one",
		},
		"no JSON": {
			how: func(ctx *perdure.OrchestrationContext) error {
				_, err := perdure.ContinueAsNew[int](ctx, math.NaN())
				return err
			},
			kind: "encode", message: `perdure: encode input of orchestration "o": json: unsupported value: NaN`,
			final: true,
		},
		"too large": {
			how: func(ctx *perdure.OrchestrationContext) error {
				_, err := perdure.ContinueAsNew[int](ctx, strings.Repeat("x", perdure.MaxPayloadBytes-1))
				return err
			},
			kind:    "payload_too_large",
			message: `payload too large: 204801 bytes, limit 204800: input of orchestration "o"`, final: true,
		},
		"its text alone": {
			how:     func(ctx *perdure.OrchestrationContext) error { return errors.New(continueWith(ctx, 2).Error()) },
			kind:    "error",
			message: `perdure: ContinueAsNew: return this error from execution 01JEXECUTION of instance "order-17"`,
		},
		"another error after it": {
			how:  func(ctx *perdure.OrchestrationContext) error { _ = continueWith(ctx, 2); return &declinedError{} },
			kind: "declinedError", message: "declined",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := continuing(t, tt.how)
			if f := w.replayed().failure(); f.Type != tt.kind || f.Message != tt.message || f.NonRetryable != tt.final {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestContinueAsNew_errorNotReturned_completes(t *testing.T) {
	t.Parallel()
	w := continuing(t, func(ctx *perdure.OrchestrationContext) error { _ = continueWith(ctx, 2); return nil })
	if got := w.replayed().output(); got != "0" || w.history[0].Number != 1 {
		t.Errorf("got %s in execution %d", got, w.history[0].Number)
	}
}

func TestContinueAsNew_panicAfterwards_fails(t *testing.T) {
	t.Parallel()
	w := continuing(t, func(ctx *perdure.OrchestrationContext) error {
		defer panic("boom")
		return continueWith(ctx, 2)
	})
	if f := w.replayed().failure(); f.Type != history.TypePanic || !strings.HasPrefix(f.Message, "boom\n") {
		t.Errorf("got %+v", f)
	}
}

func TestContinueAsNew_deferredCalls_runFirst(t *testing.T) {
	t.Parallel()
	w := continuing(t, func(ctx *perdure.OrchestrationContext) (err error) {
		defer func() { err = errors.Join(err, perdure.Sleep(ctx, time.Hour)) }()
		return continueWith(ctx, 2)
	})
	if got := kinds(w.history); got != "OrchestrationStarted TurnStarted TimerCreated" {
		t.Error(got)
	}
	if got := w.run().replayed().output(); got != "2" || !w.now.Equal(epoch.Add(time.Hour)) {
		t.Errorf("got %s at %v", got, w.now)
	}
}

// The error of another execution can only get here through shared memory. An execution must not continue because of it.
func TestContinueAsNew_errorOfOtherExecution_fails(t *testing.T) {
	t.Parallel()
	var kept error
	keep := func(ctx *perdure.OrchestrationContext) error {
		kept = continueWith(ctx, 3)
		return kept
	}
	instance := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_ = keep(ctx)
		return 0, nil
	})
	executions := func() *world {
		return orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if n == 1 {
				return 0, keep(ctx)
			}
			return 0, kept
		})
	}
	instance.options.InstanceID = "other"
	for want, start := range map[string]func() *world{
		`"other"`:    func() *world { return continuing(t, func(*perdure.OrchestrationContext) error { return kept }) },
		`"order-17"`: executions,
	} {
		instance.start("o", 1)
		f := start().replayed().failure()
		if f.Type != history.TypeError ||
			f.Message != "perdure: ContinueAsNew: return this error from execution 01JEXECUTION of instance "+want {
			t.Errorf("%s: got %+v", want, f)
		}
	}
}

func TestContinueAsNew_subOrchestration_returnsResultOfLastExecution(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "countdown", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if err := perdure.Sleep(ctx, time.Minute); err != nil || n == 0 {
			return "lift-off of " + ctx.InstanceID(), err
		}
		return perdure.ContinueAsNew[string](ctx, n-1)
	})
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		return perdure.CallSubOrchestrationByName[string](ctx, "countdown", n, perdure.WithInstanceID("c")).Await(ctx)
	})
	w := newWorld(t, r).start("o", 9).run()
	if got := w.replayed().output(); got != `"lift-off of c"` || !w.now.Equal(epoch.Add(10*time.Minute)) {
		t.Errorf("got %s at %v", got, w.now)
	}
}

func TestContinueAsNew_historyCompleted_isNondeterminism(t *testing.T) {
	t.Parallel()
	ends := func(how func(*perdure.OrchestrationContext) error) *world {
		return orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			if err := perdure.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			return 0, how(ctx)
		})
	}
	done := ends(func(*perdure.OrchestrationContext) error { return nil }).run()
	err := ends(func(ctx *perdure.OrchestrationContext) error {
		return continueWith(ctx, 2)
	}).open().Replay(done.history)
	var e *perdure.NondeterminismError
	if !errors.As(err, &e) || e.Expected != "OrchestrationCompleted" || e.Got != "OrchestrationContinuedAsNew" {
		t.Error(err)
	}
}
