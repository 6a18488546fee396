package perdure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/retry"
)

// RetryPolicy sets how a failed activity or sub-orchestration is retried. A zero field has a default.
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
	// The random choice depends only on the execution, the call and the attempt. In perduretest there is no jitter
	// unless the test enables it.
	Jitter float64
	// NonRetryableErrorTypes lists the error types that are not retried (see ActivityError.Type), whether the error has
	// the type itself or wraps or joins an error that has it.
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
// While a retry is due, nothing is kept in memory and no function runs. The policy is recorded with the call, so that a
// later change of the code does not affect it.
//
// Each attempt of a sub-orchestration is a new instance: the second attempt of "refund-7" is "refund-7~2".
//
// WithRetry panics if the policy has a negative value other than NoJitter, a MaxInterval below InitialInterval, a
// BackoffCoefficient below 1, a Jitter above 1, or an empty name in
// NonRetryableErrorTypes.
func WithRetry(p RetryPolicy) CallOption {
	if wrong := p.wrong(); wrong != "" {
		panic("perdure: WithRetry: " + wrong)
	}
	initial := cmp.Or(p.InitialInterval,
		min(retry.DefaultInitialInterval, cmp.Or(p.MaxInterval, retry.DefaultInitialInterval)))
	return retryOption{&history.RetryPolicy{
		MaxAttempts:        p.MaxAttempts,
		InitialIntervalMs:  replay.Milliseconds(initial),
		MaxIntervalMs:      replay.Milliseconds(cmp.Or(p.MaxInterval, max(retry.DefaultMaxInterval, initial))),
		BackoffCoefficient: cmp.Or(p.BackoffCoefficient, retry.DefaultBackoffCoefficient),
		NonRetryable:       slices.Clone(p.NonRetryableErrorTypes),
		Jitter:             max(cmp.Or(p.Jitter, retry.DefaultJitter), 0),
	}}
}

// wrong describes the first invalid field. It is empty if the policy is valid.
func (p *RetryPolicy) wrong() string {
	switch {
	case p.MaxAttempts < 0:
		return fmt.Sprintf("MaxAttempts %d is negative", p.MaxAttempts)
	case p.InitialInterval < 0:
		return fmt.Sprintf("InitialInterval %v is negative", p.InitialInterval)
	case p.MaxInterval < 0:
		return fmt.Sprintf("MaxInterval %v is negative", p.MaxInterval)
	case p.MaxInterval > 0 && p.MaxInterval < p.InitialInterval:
		return fmt.Sprintf("MaxInterval %v is less than InitialInterval %v", p.MaxInterval, p.InitialInterval)
	case p.BackoffCoefficient != 0 && !(p.BackoffCoefficient >= 1 && p.BackoffCoefficient <= math.MaxFloat64):
		return fmt.Sprintf("BackoffCoefficient %v is invalid; use a number of at least 1", p.BackoffCoefficient)
	case p.Jitter != NoJitter && !(p.Jitter >= 0 && p.Jitter <= 1):
		return fmt.Sprintf("Jitter %v is invalid; use 0 to 1, or NoJitter", p.Jitter)
	case slices.Contains(p.NonRetryableErrorTypes, ""):
		return "NonRetryableErrorTypes contains an empty name"
	default:
		return ""
	}
}
