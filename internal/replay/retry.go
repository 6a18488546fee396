package replay

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
)

// Default values of a retry policy.
const (
	DefaultInitialInterval    = retry.DefaultInitialInterval
	DefaultMaxInterval        = retry.DefaultMaxInterval
	DefaultBackoffCoefficient = retry.DefaultBackoffCoefficient
	DefaultJitter             = retry.DefaultJitter
)

// NextRetry is retry.Next.
func NextRetry(
	p *history.RetryPolicy, executionID string, id int64, attempt int, f *history.Failure,
) (delay time.Duration, again bool) {
	return retry.Next(p, executionID, id, attempt, f)
}

// PollDelay returns the delay between two checks of a condition. Equal arguments give the same delay, because jitter is
// derived from the execution ID.
func PollDelay(c *Context, p *history.RetryPolicy, attempt int) time.Duration {
	delay, _ := retry.Next(c.x.tasks.Options().RetryPolicy(p), c.x.options.ExecutionID, 0, attempt, &history.Failure{})
	return max(delay, time.Millisecond)
}
