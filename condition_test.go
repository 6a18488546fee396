package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// poll waits until an activity has incremented a counter from one number to another, and returns the times between the
// checks as waits.
func poll(t *testing.T, from, to int, p perdure.PollPolicy, opts ...perdure.ActivityCallOption) (
	state int, waits []time.Duration, err error,
) {
	t.Helper()
	var last time.Time
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		last, waits = time.Time{}, nil // each replay collects the waits again
		state, err = perdure.WaitForCondition(ctx, from, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if !last.IsZero() {
				waits = append(waits, ctx.Now().Sub(last))
			}
			last = ctx.Now()
			return perdure.CallActivity(ctx, inc, n, opts...).Await(ctx)
		}, func(n int) bool { return n >= to }, p)
		return "", nil
	})
	w.run().replayed()
	return state, waits, err
}

func TestWaitForCondition_pollPolicy_checksUntilConditionIsMet(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		from, to int
		policy   perdure.PollPolicy
		want     int
		waits    []time.Duration
	}{
		"at the third check": {0, 3, perdure.PollPolicy{}, 3, []time.Duration{5 * s, 5 * s}},
		"at once":            {4, 5, perdure.PollPolicy{MaxAttempts: 1}, 5, nil},
		"own state": {
			5, 8, perdure.PollPolicy{InitialInterval: 2 * s}, 8, []time.Duration{2 * s, 2 * s},
		},
		"backoff": {
			0, 5,
			perdure.PollPolicy{InitialInterval: s, BackoffCoefficient: 2, MaxInterval: 5 * s},
			5,
			[]time.Duration{s, 2 * s, 4 * s, 5 * s},
		},
		"at the last check":         {0, 3, perdure.PollPolicy{MaxAttempts: 3}, 3, []time.Duration{5 * s, 5 * s}},
		"at the end of the timeout": {0, 3, perdure.PollPolicy{Timeout: 7 * s}, 3, []time.Duration{5 * s, 2 * s}},
		"in whole milliseconds": {
			0, 2, perdure.PollPolicy{InitialInterval: 1}, 2, []time.Duration{time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, waits, err := poll(t, c.from, c.to, c.policy)
			if diff := cmp.Diff(c.waits, waits); diff != "" || state != c.want || err != nil {
				t.Errorf("got %d, error %v, waits %v", state, err, waits)
			}
		})
	}
}

func TestWaitForCondition_attemptsOrTimeExhausted_returnsConditionNotMetError(t *testing.T) {
	t.Parallel()
	state, waits, err := poll(t, 0, 100, perdure.PollPolicy{MaxAttempts: 3, InitialInterval: time.Minute})
	failed, ok := errors.AsType[*perdure.ConditionNotMetError](err)
	if !ok || *failed != (perdure.ConditionNotMetError{Attempts: 3, Waited: 2 * time.Minute, State: 3}) || state != 3 ||
		len(waits) != 2 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d, %+v, %v", state, err, waits)
	}
	if err.Error() != "condition not met after 3 checks in 2m0s" {
		t.Error(err)
	}
	state, waits, err = poll(t, 0, 100, perdure.PollPolicy{Timeout: 150 * time.Second, InitialInterval: time.Minute})
	failed, ok = errors.AsType[*perdure.ConditionNotMetError](err)
	if !ok ||
		*failed != (perdure.ConditionNotMetError{Attempts: 4, Waited: 150 * time.Second, TimedOut: true, State: 4}) ||
		state != 4 || len(waits) != 3 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d, %+v, %v", state, err, waits)
	}
}

// WaitForCondition returns an error of the check without a retry, together with the state before the check.
func TestWaitForCondition_checkFails_returnsErrorAndLastState(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		state, err := perdure.WaitForCondition(ctx, "a",
			func(ctx *perdure.OrchestrationContext, s string) (string, error) {
				if s == "ab" {
					return "lost", errors.New("no more")
				}
				return s + "b", nil
			}, func(string) bool { return false }, perdure.PollPolicy{})
		return fmt.Sprintf("%s, %v", state, err), nil
	})
	if got := w.run().replayed().output(); got != `"ab, no more"` {
		t.Error(got)
	}
}

func TestWaitForCondition_scopeEnds_returnsCancelledError(t *testing.T) {
	t.Parallel()
	checks := 0
	wait := func(ctx *perdure.OrchestrationContext) (string, error) {
		checks = 0
		limited, stop := perdure.WithTimeout(ctx, 12*time.Second)
		defer stop()
		n, err := perdure.WaitForCondition(limited, 0, func(_ *perdure.OrchestrationContext, n int) (int, error) {
			checks++
			return n + 1, nil
		}, func(int) bool { return false }, perdure.PollPolicy{})
		_, cancelled := errors.AsType[*perdure.CancelledError](err)
		return fmt.Sprintf("%d %t %t", n, cancelled, errors.Is(err, context.DeadlineExceeded)), nil
	}
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) { return wait(ctx) })
	if got := w.run().replayed().output(); got != `"3 true true"` {
		t.Error(got)
	}
	w = orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) { return wait(ctx) })
	w.turn(cancel("enough"))
	if got := w.output(); got != `"1 true false"` || checks != 1 {
		t.Errorf("got %s after %d checks", got, checks)
	}
	limited := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		over, stop := perdure.WithCancel(ctx)
		stop()
		_, err := perdure.WaitForCondition(over, 0, func(*perdure.OrchestrationContext, int) (int, error) {
			panic("it has ended")
		}, func(int) bool { return true }, perdure.PollPolicy{})
		return fmt.Sprint(err != nil), nil
	})
	if got := limited.output(); got != `"true"` {
		t.Error(got)
	}
}

// Jitter shortens a wait by at most the configured fraction. Replays of an execution have the same jitter, and other
// executions have another.
func TestPollPolicy_jitter_isInRangeAndRepeatable(t *testing.T) {
	t.Parallel()
	waits := func(execution string, jitter float64) []time.Duration {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.WaitForCondition(ctx, 0, func(_ *perdure.OrchestrationContext, n int) (int, error) {
				return n + 1, nil
			}, func(n int) bool { return n == 20 },
				perdure.PollPolicy{InitialInterval: time.Minute, Jitter: jitter})
		})
		w := newWorld(t, r)
		w.options.ExecutionID, w.options.ExactRetries = execution, false
		w.start("o", 1).run().replayed()
		var all []time.Duration
		for i := range w.history {
			if e := &w.history[i]; e.Kind == history.TimerCreated {
				all = append(all, e.FireAt.Sub(e.Time))
			}
		}
		return all
	}
	one, again, other := waits("01JONE", 0.5), waits("01JONE", 0.5), waits("01JOTHER", 0.5)
	if len(one) != 19 || cmp.Diff(one, again) != "" || cmp.Diff(one, other) == "" {
		t.Errorf("got waits %v,\nrepeated %v,\nof another execution %v", one, again, other)
	}
	distinct := map[time.Duration]bool{}
	for _, d := range one {
		if distinct[d] = true; d < 30*time.Second || d > time.Minute {
			t.Errorf("got wait %v", d)
		}
	}
	if len(distinct) < 10 {
		t.Errorf("waits without variation: got %v", one)
	}
	for _, d := range waits("01JEXECUTION1", perdure.NoJitter) {
		if d != time.Minute {
			t.Errorf("wait without jitter: got %v", d)
		}
	}
}

func TestPollPolicy_invalid_panics(t *testing.T) {
	t.Parallel()
	for field, p := range map[string]perdure.PollPolicy{
		"MaxAttempts":        {MaxAttempts: -1},
		"Timeout":            {Timeout: -1},
		"InitialInterval":    {InitialInterval: -1},
		"BackoffCoefficient": {BackoffCoefficient: 0.5},
		"MaxInterval":        {InitialInterval: time.Minute, MaxInterval: time.Second},
		"MaxInterval 1s":     {MaxInterval: time.Second},
		"Jitter":             {Jitter: 1.1},
		"Jitter -0.5":        {Jitter: -0.5},
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.WaitForCondition(ctx, 0, func(*perdure.OrchestrationContext, int) (int, error) {
				return 0, nil
			}, func(int) bool { return true }, p)
		})
		if f := w.failure(); f.Type != history.TypePanic ||
			!strings.Contains(f.Message, "perdure: WaitForCondition: "+field) {
			t.Errorf("%s: got %+v", field, f)
		}
	}
}
