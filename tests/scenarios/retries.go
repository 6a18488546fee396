package scenarios

import (
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

func retries(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "RetriedActivity", Register: body(tries), Input: Tries{3, 4, tick},
			Check: gives("succeeded with 3 after the interval"),
		},
		{
			Name: "RetriesExhausted", Register: body(tries), Input: Tries{9, 3, tick},
			Check: gives("error: attempt 3 of 9"),
		},
		{Name: "NoRetryOfATypeThatIsNotRetryable", Register: body(triesOnce), Input: tick, Check: gives("StockError")},
		{
			Name: "RetriedChild", Register: body(triesChild), Input: Tries{3, 4, tick},
			Check: gives("succeeded with 3 after the interval"),
		},
		{
			Name: "RetriesOfAChildExhausted", Register: body(triesChild), Input: Tries{9, 3, tick},
			Check: gives("error: attempt 3 of 9"),
		},
	}
}

// Tries is in which attempt something succeeds, how many there may be, and how long after the first the second comes.
type Tries struct {
	SucceedsAt, Most int
	Interval         time.Duration
}

func (t Tries) policy() perdure.CallOption {
	return perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts: t.Most, InitialInterval: t.Interval, BackoffCoefficient: 1.5, Jitter: perdure.NoJitter,
	})
}

func tries(ctx *perdure.OrchestrationContext, t Tries) (string, error) {
	began := ctx.Now()
	n, err := perdure.CallActivity(ctx, flaky, t.SucceedsAt, t.policy()).Await(ctx)
	return t.outcome(ctx, began, n, err)
}

// outcome says what came of it, and whether the intervals were waited for.
func (t Tries) outcome(ctx *perdure.OrchestrationContext, began time.Time, n int, err error) (string, error) {
	if took := ctx.Now().Sub(began); took < t.Interval+t.Interval*3/2 {
		return "", fmt.Errorf("three attempts took %v, at intervals of %v and half as much again", took, t.Interval)
	}
	if err != nil {
		text := err.Error()
		return typeOf(err) + ": " + text[strings.LastIndex(text, ": ")+2:], nil
	}
	return fmt.Sprintf("succeeded with %d after the interval", n), nil
}

// triesOnce has a policy that does not try this error again.
func triesOnce(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	began := ctx.Now()
	policy := perdure.RetryPolicy{
		MaxAttempts: 5, InitialInterval: 60 * tick, NonRetryableErrorTypes: []string{"StockError"},
	}
	_, err := perdure.CallActivity(ctx, reserve, soldOut, perdure.WithRetry(policy)).Await(ctx)
	if took := ctx.Now().Sub(began); took >= 60*tick {
		return "", fmt.Errorf("it took %v: it was tried again", took)
	}
	return typeOf(err), nil
}

func triesChild(ctx *perdure.OrchestrationContext, t Tries) (string, error) {
	began := ctx.Now()
	n, err := perdure.CallSubOrchestrationByName[int](ctx, "FlakyChild", t.SucceedsAt, t.policy()).Await(ctx)
	return t.outcome(ctx, began, n, err)
}

// flakyChild succeeds in its n-th attempt, which its id tells: that of the second ends with ~2.
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
