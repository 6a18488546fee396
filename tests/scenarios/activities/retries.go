package activities

import (
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func retryScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "RetriedActivity", Register: kit.Run(retryActivity), Input: RetryInput{3, 4, tick},
			Check: kit.Returns("succeeded with 3 after the interval"),
		},
		{
			Name: "RetriesExhausted", Register: kit.Run(retryActivity), Input: RetryInput{9, 3, tick},
			Check: kit.Returns("error: attempt 3 of 9"),
		},
		{
			Name: "NoRetryOfATypeThatIsNotRetryable", Register: kit.Run(nonRetryable), Input: tick,
			Check: kit.Returns("StockError"),
		},
		{
			Name: "RetriedChild", Register: kit.Run(retryChild), Input: RetryInput{3, 4, tick},
			Check: kit.Returns("succeeded with 3 after the interval"),
		},
		{
			Name: "RetriesOfAChildExhausted", Register: kit.Run(retryChild), Input: RetryInput{9, 3, tick},
			Check: kit.Returns("error: attempt 3 of 9"),
		},
	}
}

// RetryInput has the attempt that succeeds, the maximum number of attempts, and the first interval.
type RetryInput struct {
	SucceedsAt, Most int
	Interval         time.Duration
}

func (t RetryInput) policy() perdure.CallOption {
	return perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts: t.Most, InitialInterval: t.Interval, BackoffCoefficient: 1.5, Jitter: perdure.NoJitter,
	})
}

func retryActivity(ctx *perdure.OrchestrationContext, t RetryInput) (string, error) {
	began := ctx.Now()
	n, err := perdure.CallActivity(ctx, kit.Flaky, t.SucceedsAt, t.policy()).Await(ctx)
	return t.outcome(ctx, began, n, err)
}

// outcome returns the result, and checks that the intervals have passed.
func (t RetryInput) outcome(ctx *perdure.OrchestrationContext, began time.Time, n int, err error) (string, error) {
	if took := ctx.Now().Sub(began); took < t.Interval+t.Interval*3/2 {
		return "", fmt.Errorf("three attempts took %v, the intervals are %v and half as much again", took, t.Interval)
	}
	if err != nil {
		text := err.Error()
		return kit.FailureType(err) + ": " + text[strings.LastIndex(text, ": ")+2:], nil
	}
	return fmt.Sprintf("succeeded with %d after the interval", n), nil
}

// nonRetryable calls an activity whose error type is not retryable.
func nonRetryable(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	began := ctx.Now()
	policy := perdure.RetryPolicy{
		MaxAttempts: 5, InitialInterval: 60 * tick, NonRetryableErrorTypes: []string{"StockError"},
	}
	_, err := perdure.CallActivity(ctx, kit.Reserve, kit.SoldOut, perdure.WithRetry(policy)).Await(ctx)
	if took := ctx.Now().Sub(began); took >= 60*tick {
		return "", fmt.Errorf("took %v: the activity was retried", took)
	}
	return kit.FailureType(err), nil
}

func retryChild(ctx *perdure.OrchestrationContext, t RetryInput) (string, error) {
	began := ctx.Now()
	n, err := perdure.CallSubOrchestrationByName[int](ctx, "FlakyChild", t.SucceedsAt, t.policy()).Await(ctx)
	return t.outcome(ctx, began, n, err)
}

// flakyChild succeeds in its n-th attempt. The ID of the second attempt ends with ~2.
func flakyChild(ctx *perdure.OrchestrationContext, n int) (int, error) {
	attempt := 1
	if _, suffix, found := strings.Cut(ctx.InstanceID(), "~"); found {
		if _, err := fmt.Sscan(suffix, &attempt); err != nil {
			return 0, err
		}
	}
	if attempt < n {
		return 0, fmt.Errorf("attempt %d of %d", attempt, n)
	}
	return n, nil
}
