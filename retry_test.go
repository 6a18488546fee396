package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestRetryPolicyIsRecordedWithItsDefaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy perdure.RetryPolicy
		want   history.RetryPolicy
	}{
		"nothing said": {perdure.RetryPolicy{}, history.RetryPolicy{InitialIntervalMs: 1000, MaxIntervalMs: 3_600_000, BackoffCoefficient: 2}},
		"everything said": {
			perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Minute, MaxInterval: time.Hour, BackoffCoefficient: 1.5, NonRetryable: []string{"E"}},
			history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 60_000, MaxIntervalMs: 3_600_000, BackoffCoefficient: 1.5, NonRetryable: []string{"E"}},
		},
		"rounded up": {
			perdure.RetryPolicy{InitialInterval: 1, MaxInterval: time.Millisecond + 1, BackoffCoefficient: 1},
			history.RetryPolicy{InitialIntervalMs: 1, MaxIntervalMs: 2, BackoffCoefficient: 1},
		},
		"long": {perdure.RetryPolicy{InitialInterval: 2 * time.Hour}, history.RetryPolicy{InitialIntervalMs: 7_200_000, MaxIntervalMs: 7_200_000, BackoffCoefficient: 2}},
		"capped below the default": {
			perdure.RetryPolicy{MaxInterval: time.Millisecond},
			history.RetryPolicy{InitialIntervalMs: 1, MaxIntervalMs: 1, BackoffCoefficient: 2},
		},
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivity(ctx, inc, 1, perdure.WithRetry(tt.policy)).Await(ctx)
		})
		if got := w.history[2].Retry; got == nil || !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRetryPolicyThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]perdure.RetryPolicy{
		"MaxAttempts -1 is negative":                        {MaxAttempts: -1},
		"InitialInterval -1ns is negative":                  {InitialInterval: -1},
		"MaxInterval -1ns is negative":                      {MaxInterval: -1},
		"MaxInterval 1s is below InitialInterval 1m0s":      {InitialInterval: time.Minute, MaxInterval: time.Second},
		"BackoffCoefficient 0.5 is not a number from 1 on":  {BackoffCoefficient: 0.5},
		"BackoffCoefficient NaN is not a number from 1 on":  {BackoffCoefficient: math.NaN()},
		"BackoffCoefficient +Inf is not a number from 1 on": {BackoffCoefficient: math.Inf(1)},
		"NonRetryable has an empty name":                    {NonRetryable: []string{""}},
	} {
		func() {
			defer func() {
				if r := recover(); r != "perdure: WithRetry: "+want {
					t.Errorf("%v, want %q", r, want)
				}
			}()
			perdure.WithRetry(p)
		}()
	}
}

func TestNextRetry(t *testing.T) {
	t.Parallel()
	failed := &history.Failure{Type: "E", Message: "m"}
	three := &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 100, MaxIntervalMs: 250, BackoffCoefficient: 2, NonRetryable: []string{"Declined"}}
	endless := &history.RetryPolicy{InitialIntervalMs: 1000, MaxIntervalMs: math.MaxInt64, BackoffCoefficient: 10}
	const never = -1
	for name, tt := range map[string]struct {
		policy  *history.RetryPolicy
		attempt int
		failure *history.Failure
		want    time.Duration
	}{
		"no policy":              {nil, 1, failed, never},
		"no failure":             {three, 1, nil, never},
		"first":                  {three, 1, failed, 100 * time.Millisecond},
		"second":                 {three, 2, failed, 200 * time.Millisecond},
		"the last":               {three, 3, failed, never},
		"capped":                 {&history.RetryPolicy{InitialIntervalMs: 100, MaxIntervalMs: 250, BackoffCoefficient: 2}, 3, failed, 250 * time.Millisecond},
		"marked":                 {three, 1, &history.Failure{Type: "E", NonRetryable: true}, never},
		"named":                  {three, 1, &history.Failure{Type: "Declined"}, never},
		"named inside":           {three, 1, &history.Failure{Type: "ActivityError", Cause: failedWith("Declined")}, never},
		"another name":           {three, 1, &history.Failure{Type: "DeclinedError"}, 100 * time.Millisecond},
		"cancelled":              {three, 1, failedWith(history.TypeCancelled), never},
		"timed out":              {three, 1, failedWith(history.TypeTimeout), 100 * time.Millisecond},
		"panicked":               {three, 1, failedWith(history.TypePanic), 100 * time.Millisecond},
		"without number":         {endless, 2, failed, 10 * time.Second},
		"far beyond any clock":   {endless, 1000, failed, math.MaxInt64 / 2_000_000 * time.Millisecond},
		"an attempt of nothing":  {three, 0, failed, 100 * time.Millisecond},
		"says nothing":           {&history.RetryPolicy{}, 2, failed, 2 * time.Second},
		"says nothing, for long": {&history.RetryPolicy{}, math.MaxInt, failed, time.Hour},
	} {
		delay, again := perdure.NextRetry(tt.policy, tt.attempt, tt.failure)
		if again != (tt.want >= 0) || again && delay != tt.want {
			t.Errorf("%s: %v, %v, want %v", name, delay, again, tt.want)
		}
	}
}

func failedWith(kind string) *history.Failure { return &history.Failure{Type: kind} }

func TestScheduledRetryIsRecordedAndSettlesNothing(t *testing.T) {
	t.Parallel()
	due := epoch.Add(time.Minute)
	retry := func(attempt int) history.Event {
		return history.Event{Kind: history.ActivityRetryScheduled, SourceEventID: 3, Attempt: attempt, FireAt: &due, Error: failedWith("E")}
	}
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "nobody", 1, perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
	})
	w.turn(retry(2)).turn(retry(2)).turn(retry(3), retry(2))
	var kinds []string
	for _, ev := range w.history[3:] {
		kinds = append(kinds, ev.String())
	}
	if got := strings.Join(kinds, ", "); got != "TurnStarted #4, ActivityRetryScheduled #5 of #3, TurnStarted #6, ActivityRetryScheduled #7 of #3" {
		t.Error(got)
	}
	if got := w.history[4]; got.Attempt != 2 || !got.FireAt.Equal(due) || got.Error.Type != "E" {
		t.Errorf("%+v", got)
	}
	w.replayed().turn(history.Event{Kind: history.ActivityCompleted, SourceEventID: 3, Result: history.Payload("7"), Attempt: 3})
	if got := w.replayed().output(); got != "7" {
		t.Error(got)
	}
}

func TestCancelledActivityIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		perdure.CallActivityByName[int](ctx, "nobody", 1, perdure.WithRetry(perdure.RetryPolicy{})).Cancel("")
		return 1, perdure.Sleep(ctx, time.Hour)
	})
	before := len(w.history)
	if w.turn(history.Event{Kind: history.ActivityRetryScheduled, SourceEventID: 3, Attempt: 2}); len(w.history) != before {
		t.Errorf("%v", w.history[before:])
	}
}

func ExampleWithRetry() {
	calls := 0
	charge := perdure.DefineActivity[int, string]("charge")
	r := perdure.NewRegistry()
	charge.Register(r, func(context.Context, int) (string, error) {
		if calls++; calls < 3 {
			return "", errors.New("the bank does not answer")
		}
		return fmt.Sprintf("charged at the %drd attempt", calls), nil
	})
	perdure.AddOrchestration(r, "pay", func(ctx *perdure.OrchestrationContext, amount int) (string, error) {
		return charge.Call(ctx, amount, perdure.WithRetry(perdure.RetryPolicy{
			MaxAttempts:     5,
			InitialInterval: time.Second,
			MaxInterval:     time.Minute,
			NonRetryable:    []string{"DeclinedError"},
		})).Await(ctx)
	})
	fmt.Println(example(r, "pay", 100))
	// Output: "charged at the 3rd attempt"
}
