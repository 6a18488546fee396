package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
)

func TestRetryPolicy_unsetFields_areRecordedWithDefaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy perdure.RetryPolicy
		want   history.RetryPolicy
	}{
		"empty policy": {
			perdure.RetryPolicy{},
			history.RetryPolicy{InitialIntervalMs: 1000, MaxIntervalMs: 3_600_000, BackoffCoefficient: 2, Jitter: 0.2},
		},
		"complete policy": {
			perdure.RetryPolicy{
				MaxAttempts: 3, InitialInterval: time.Minute, MaxInterval: time.Hour, BackoffCoefficient: 1.5,
				NonRetryableErrorTypes: []string{"E"}, Jitter: 1,
			},
			history.RetryPolicy{
				MaxAttempts: 3, InitialIntervalMs: 60_000, MaxIntervalMs: 3_600_000, BackoffCoefficient: 1.5,
				NonRetryable: []string{"E"}, Jitter: 1,
			},
		},
		"rounded up": {
			perdure.RetryPolicy{
				InitialInterval: 1, MaxInterval: time.Millisecond + 1, BackoffCoefficient: 1, Jitter: 0.5,
			},
			history.RetryPolicy{InitialIntervalMs: 1, MaxIntervalMs: 2, BackoffCoefficient: 1, Jitter: 0.5},
		},
		"long": {
			perdure.RetryPolicy{InitialInterval: 2 * time.Hour, Jitter: perdure.NoJitter},
			history.RetryPolicy{InitialIntervalMs: 7_200_000, MaxIntervalMs: 7_200_000, BackoffCoefficient: 2},
		},
		"capped below the default": {
			perdure.RetryPolicy{MaxInterval: time.Millisecond},
			history.RetryPolicy{InitialIntervalMs: 1, MaxIntervalMs: 1, BackoffCoefficient: 2, Jitter: 0.2},
		},
	} {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivityByName[int](ctx, "missing", 1, perdure.WithRetry(tt.policy)).Await(ctx)
		})
		w := newWorld(t, r)
		w.options.ExactRetries = false
		w.start("o", 1)
		if got := w.history[2].Retry; got == nil || !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestRetryPolicy_invalid_panics(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]perdure.RetryPolicy{
		"MaxAttempts -1 is negative":       {MaxAttempts: -1},
		"InitialInterval -1ns is negative": {InitialInterval: -1},
		"MaxInterval -1ns is negative":     {MaxInterval: -1},
		"MaxInterval 1s is less than InitialInterval 1m0s": {
			InitialInterval: time.Minute, MaxInterval: time.Second,
		},
		"BackoffCoefficient 0.5 is invalid; use a number of at least 1":  {BackoffCoefficient: 0.5},
		"BackoffCoefficient NaN is invalid; use a number of at least 1":  {BackoffCoefficient: math.NaN()},
		"BackoffCoefficient +Inf is invalid; use a number of at least 1": {BackoffCoefficient: math.Inf(1)},
		"Jitter 1.1 is invalid; use 0 to 1, or NoJitter":                 {Jitter: 1.1},
		"Jitter -0.5 is invalid; use 0 to 1, or NoJitter":                {Jitter: -0.5},
		"Jitter NaN is invalid; use 0 to 1, or NoJitter":                 {Jitter: math.NaN()},
		"NonRetryableErrorTypes contains an empty name":                  {NonRetryableErrorTypes: []string{""}},
	} {
		func() {
			defer func() {
				if r := recover(); r != "perdure: WithRetry: "+want {
					t.Errorf("got %v, want %q", r, want)
				}
			}()
			perdure.WithRetry(p)
		}()
	}
}

func TestRetryNext_policyAndFailure_decideDelay(t *testing.T) {
	t.Parallel()
	failed := &history.Failure{Type: "E", Message: "m"}
	three := &history.RetryPolicy{
		MaxAttempts: 3, InitialIntervalMs: 100, MaxIntervalMs: 250, BackoffCoefficient: 2,
		NonRetryable: []string{"Declined"},
	}
	endless := &history.RetryPolicy{InitialIntervalMs: 1000, MaxIntervalMs: math.MaxInt64, BackoffCoefficient: 10}
	const never = -1
	for name, tt := range map[string]struct {
		policy  *history.RetryPolicy
		attempt int
		failure *history.Failure
		want    time.Duration
	}{
		"no policy":  {nil, 1, failed, never},
		"no failure": {three, 1, nil, never},
		"first":      {three, 1, failed, 100 * time.Millisecond},
		"second":     {three, 2, failed, 200 * time.Millisecond},
		"the last":   {three, 3, failed, never},
		"capped": {
			&history.RetryPolicy{InitialIntervalMs: 100, MaxIntervalMs: 250, BackoffCoefficient: 2}, 3, failed,
			250 * time.Millisecond,
		},
		"marked": {three, 1, &history.Failure{Type: "E", NonRetryable: true}, never},
		"named":  {three, 1, &history.Failure{Type: "Declined"}, never},
		"cause has the type": {
			three, 1, &history.Failure{Type: "ActivityError", Cause: failedWith("Declined")}, never,
		},
		"another type":                  {three, 1, &history.Failure{Type: "DeclinedError"}, 100 * time.Millisecond},
		"cancelled":                     {three, 1, failedWith(history.TypeCancelled), never},
		"timed out":                     {three, 1, failedWith(history.TypeTimeout), 100 * time.Millisecond},
		"panicked":                      {three, 1, failedWith(history.TypePanic), 100 * time.Millisecond},
		"without number":                {endless, 2, failed, 10 * time.Second},
		"delay beyond the largest time": {endless, 1000, failed, math.MaxInt64 / 2_000_000 * time.Millisecond},
		"attempt without a policy":      {three, 0, failed, 100 * time.Millisecond},
		"empty policy":                  {&history.RetryPolicy{}, 2, failed, 2 * time.Second},
		"empty policy, many attempts":   {&history.RetryPolicy{}, math.MaxInt, failed, time.Hour},
	} {
		delay, again := retry.Next(tt.policy, "01JEXECUTION", 3, tt.attempt, tt.failure)
		if again != (tt.want >= 0) || again && delay != tt.want {
			t.Errorf("%s: got %v, %v, want %v", name, delay, again, tt.want)
		}
	}
}

// The retries of 10,000 activities that fail at the same time are spread evenly over the range of the jitter.
func TestRetryNext_manyFailuresAtOnce_spreadsRetries(t *testing.T) {
	t.Parallel()
	const calls, interval, bins = 10_000, time.Minute, 12
	for _, jitter := range []float64{0.2, 0.5, 1} {
		policy := &history.RetryPolicy{
			InitialIntervalMs: interval.Milliseconds(), BackoffCoefficient: 2, Jitter: jitter,
		}
		share := time.Duration(jitter * float64(interval))
		var counts [bins]int
		for id := range int64(calls) {
			delay, again := retry.Next(policy, "01JEXECUTION", id, 1, failedWith("E"))
			if repeated, _ := retry.Next(policy, "01JEXECUTION", id, 1, failedWith("E")); !again ||
				repeated != delay {
				t.Fatalf("activity %d: got delay %v, then %v", id, delay, repeated)
			}
			if delay <= interval-share || delay > interval {
				t.Fatalf("activity %d with jitter %v: got delay %v of %v", id, jitter, delay, interval)
			}
			counts[(interval-delay)*bins/share]++
		}
		if least, most := slices.Min(counts[:]),
			slices.Max(counts[:]); least < calls/bins*8/10 || most > calls/bins*12/10 {
			t.Errorf("jitter %v: got %d to %d of %d delays in a twelfth of the range: %v",
				jitter, least, most, calls, counts)
		}
	}
}

func TestRetryNext_otherAttemptOrExecution_hasOtherJitter(t *testing.T) {
	t.Parallel()
	policy := &history.RetryPolicy{InitialIntervalMs: 60_000, BackoffCoefficient: 1, Jitter: 1}
	seen := map[time.Duration]bool{}
	for _, execution := range []string{"01JONE", "01JTWO"} {
		for attempt := range 100 {
			delay, _ := retry.Next(policy, execution, 3, attempt+1, failedWith("E"))
			seen[delay] = true
		}
	}
	if len(seen) < 190 {
		t.Errorf("200 delays of up to a minute: got %d different ones", len(seen))
	}
}

// A release must not change the jitter of running instances. Otherwise a redelivered outcome would request a different
// retry time.
func TestRetryNext_jitter_isStableBetweenReleases(t *testing.T) {
	t.Parallel()
	policy := &history.RetryPolicy{InitialIntervalMs: 100_000, BackoffCoefficient: 2, Jitter: 0.2}
	for attempt, want := range []time.Duration{
		83_774 * time.Millisecond, 190_794 * time.Millisecond, 373_730 * time.Millisecond,
	} {
		if got, _ := retry.Next(policy, "01JEXECUTION", 3, attempt+1, failedWith("E")); got != want {
			t.Errorf("attempt %d: got %v, want %v", attempt+1, got, want)
		}
	}
	for _, forged := range []float64{7, math.Inf(1)} { // counts as 1
		delay, _ := retry.Next(&history.RetryPolicy{InitialIntervalMs: 1, Jitter: forged}, "01JEXECUTION", 3, 1,
			failedWith("E"))
		if delay != time.Millisecond {
			t.Errorf("jitter %v: got delay %v", forged, delay)
		}
	}
	for _, forged := range []float64{-1, math.NaN()} { // counts as 0
		delay, _ := retry.Next(&history.RetryPolicy{InitialIntervalMs: 1000, Jitter: forged}, "01JEXECUTION", 3,
			1, failedWith("E"))
		if delay != time.Second {
			t.Errorf("jitter %v: got delay %v", forged, delay)
		}
	}
}

func failedWith(kind string) *history.Failure { return &history.Failure{Type: kind} }

func TestCallActivity_retryScheduled_isRecordedAndFutureStaysPending(t *testing.T) {
	t.Parallel()
	due := epoch.Add(time.Minute)
	retry := func(attempt int) history.Event {
		return history.Event{
			Kind: history.ActivityRetryScheduled, SourceEventID: 3, Attempt: attempt, FireAt: &due,
			Error: failedWith("E"),
		}
	}
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "missing", 1, perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
	})
	w.turn(retry(2)).turn(retry(2)).turn(retry(3), retry(2))
	var kinds []string
	for _, ev := range w.history[3:] {
		kinds = append(kinds, ev.String())
	}
	if got := strings.Join(kinds,
		", "); got != "TurnStarted #4, ActivityRetryScheduled #5 of #3, TurnStarted #6, ActivityRetryScheduled #7 of #3" {
		t.Error(got)
	}
	if got := w.history[4]; got.Attempt != 2 || !got.FireAt.Equal(due) || got.Error.Type != "E" {
		t.Errorf("got %+v", got)
	}
	w.replayed().turn(history.Event{
		Kind: history.ActivityCompleted, SourceEventID: 3, Result: history.Payload("7"), Attempt: 3,
	})
	if got := w.replayed().output(); got != "7" {
		t.Error(got)
	}
}

func TestCallActivity_cancelled_ignoresScheduledRetry(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		perdure.CallActivityByName[int](ctx, "missing", 1, perdure.WithRetry(perdure.RetryPolicy{})).Cancel("")
		return 1, perdure.Sleep(ctx, time.Hour)
	})
	before := len(w.history)
	if w.turn(history.Event{
		Kind: history.ActivityRetryScheduled, SourceEventID: 3, Attempt: 2,
	}); len(w.history) != before {
		t.Errorf("got %v", w.history[before:])
	}
}

func ExampleWithRetry() {
	calls := 0
	charge := perdure.DefineActivity[int, string]("charge")
	r := perdure.NewRegistry()
	charge.Register(r, func(context.Context, int) (string, error) {
		if calls++; calls < 3 {
			return "", errors.New("the bank does not respond")
		}
		return fmt.Sprintf("charged at the %drd attempt", calls), nil
	})
	perdure.AddOrchestration(r, "pay", func(ctx *perdure.OrchestrationContext, amount int) (string, error) {
		return charge.Call(ctx, amount, perdure.WithRetry(perdure.RetryPolicy{
			MaxAttempts:            5,
			InitialInterval:        time.Second,
			MaxInterval:            time.Minute,
			NonRetryableErrorTypes: []string{"DeclinedError"},
		})).Await(ctx)
	})
	fmt.Println(example(r, "pay", 100))
	// Output: "charged at the 3rd attempt"
}
