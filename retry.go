package perdure

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/retry"
)

// RetryPolicy sets the retries of a failed activity or sub-orchestration. A zero field has a default.
//
// The zero RetryPolicy retries forever, after about 1 s, 2 s, 4 s and so on up to 1 hour. Limit it with MaxAttempts,
// WithScheduleToCloseTimeout (activities only) or a cancellation.
//
// Some failures are never retried:
//
//   - errors marked with NonRetryable, and error types named in NonRetryableErrorTypes,
//   - payloads that cannot be encoded or decoded or are too large,
//   - poison: an activity that repeatedly ended its process, and
//   - cancellations.
//
// A panic and a TimeoutError of one attempt are retried.
type RetryPolicy struct {
	// MaxAttempts is the maximum number of attempts, including the first one. 0 means no limit. 1 means no retry.
	MaxAttempts int
	// InitialInterval is the time between the end of the first attempt and the second attempt. The default is 1 second.
	// Intervals are rounded up to whole milliseconds.
	InitialInterval time.Duration
	// MaxInterval caps the intervals. The default is 1 hour, or InitialInterval if it is longer.
	MaxInterval time.Duration
	// BackoffCoefficient is the growth factor of the intervals, 1 or more. The default is 2.
	BackoffCoefficient float64
	// Jitter is the random part of each interval, above 0 and up to 1. It spreads retries of calls that failed at the
	// same time. Each wait is chosen uniformly between (1 - Jitter) of the interval and the whole interval. The default
	// is 0.2. NoJitter disables jitter.
	//
	// The random choice depends only on the execution, the call and the attempt. Package perduretest disables jitter
	// unless the test enables it.
	Jitter float64
	// NonRetryableErrorTypes lists the error types that are not retried (see ActivityError.Type). An error matches if
	// it has the type, or if it wraps or joins an error with the type.
	NonRetryableErrorTypes []string
}

// NoJitter is a Jitter of a RetryPolicy or PollPolicy that disables jitter.
const NoJitter = -1

// CallOption is an option of calls of activities and of orchestrations.
type CallOption interface {
	ActivityCallOption
	SubOrchestrationCallOption
}

type retryOption struct{ policy *history.RetryPolicy }

func (r retryOption) applyToActivityCall(c *replay.ActivityCall) { c.Retry = r.policy }

func (r retryOption) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.Retry = r.policy }

// WithRetry retries a failed activity or sub-orchestration. The future settles with the result of the last attempt.
// Between attempts, nothing is kept in memory and no function runs. The policy is recorded with the call, so that a
// later change of the code does not affect it.
//
// Each attempt of a sub-orchestration is a new instance: the second attempt of "refund-7" is "refund-7~2".
//
// WithRetry panics if a value of the policy is negative (except NoJitter) or a name in NonRetryableErrorTypes is empty.
// It also panics if MaxInterval is below InitialInterval, BackoffCoefficient is below 1, or Jitter is above 1.
func WithRetry(p RetryPolicy) CallOption {
	policy := retry.Policy(p)
	if problem := policy.Problem(); problem != "" {
		panic("perdure: WithRetry: " + problem)
	}
	return retryOption{policy.Recorded()}
}
