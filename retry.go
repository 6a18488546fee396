package perdure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// RetryPolicy says how an activity or sub-orchestration that fails is tried again. The zero value of each field is a default.
//
// Some failures are never tried again: those marked with NonRetryable, values that do not encode or decode or are too
// large, and cancellations.
type RetryPolicy struct {
	// MaxAttempts counts all attempts, the first too. 0 is no limit: it is tried until it succeeds, is cancelled, or
	// fails with an error that is not retried. 1 is no retry.
	MaxAttempts int
	// InitialInterval is the time between the first attempt's end and the second attempt; by default a second. Intervals are
	// rounded up to whole milliseconds.
	InitialInterval time.Duration
	// MaxInterval caps the intervals; by default an hour, or InitialInterval where that is longer.
	MaxInterval time.Duration
	// BackoffCoefficient is how much longer each interval is than the one before, 1 or more; by default 2.
	BackoffCoefficient float64
	// NonRetryable are the names of error types (ActivityError.Type says how errors are named) that are not tried again, be it the
	// error itself or one that it wraps.
	NonRetryable []string
}

// CallOption is an option of calls of whatever can be called: of activities and of other orchestrations.
type CallOption interface {
	ActivityCallOption
	SubOrchestrationCallOption
}

type retryOption struct{ policy *history.RetryPolicy }

func (r retryOption) applyToActivityCall(c *replay.ActivityCall) { c.Retry = r.policy }

func (r retryOption) applyToSubOrchestrationCall(c *subOrchestrationCall) { c.Retry = r.policy }

// WithRetry has an activity or sub-orchestration tried again when it fails. The future settles with the outcome of the last
// attempt; between attempts nothing is held in memory, and no function runs. The policy is recorded with the call: a call that was
// made keeps its policy when the code changes.
//
// Each attempt of a sub-orchestration is a new instance: the second of "refund-7" is "refund-7~2".
//
// A negative value, a MaxInterval below InitialInterval, a BackoffCoefficient below 1 and an empty name in NonRetryable panic.
func WithRetry(p RetryPolicy) CallOption {
	if wrong := p.wrong(); wrong != "" {
		panic("perdure: WithRetry: " + wrong)
	}
	initial := cmp.Or(p.InitialInterval, min(replay.DefaultInitialInterval, cmp.Or(p.MaxInterval, replay.DefaultInitialInterval)))
	return retryOption{&history.RetryPolicy{
		MaxAttempts:        p.MaxAttempts,
		InitialIntervalMs:  milliseconds(initial),
		MaxIntervalMs:      milliseconds(cmp.Or(p.MaxInterval, max(replay.DefaultMaxInterval, initial))),
		BackoffCoefficient: cmp.Or(p.BackoffCoefficient, replay.DefaultBackoffCoefficient),
		NonRetryable:       slices.Clone(p.NonRetryable),
	}}
}

// wrong names the field that cannot be.
func (p *RetryPolicy) wrong() string {
	switch {
	case p.MaxAttempts < 0:
		return fmt.Sprintf("MaxAttempts %d is negative", p.MaxAttempts)
	case p.InitialInterval < 0:
		return fmt.Sprintf("InitialInterval %v is negative", p.InitialInterval)
	case p.MaxInterval < 0:
		return fmt.Sprintf("MaxInterval %v is negative", p.MaxInterval)
	case p.MaxInterval > 0 && p.MaxInterval < p.InitialInterval:
		return fmt.Sprintf("MaxInterval %v is below InitialInterval %v", p.MaxInterval, p.InitialInterval)
	case p.BackoffCoefficient != 0 && !(p.BackoffCoefficient >= 1 && p.BackoffCoefficient <= math.MaxFloat64):
		return fmt.Sprintf("BackoffCoefficient %v is not a number from 1 on", p.BackoffCoefficient)
	case slices.Contains(p.NonRetryable, ""):
		return "NonRetryable has an empty name"
	default:
		return ""
	}
}

func milliseconds(d time.Duration) int64 {
	return int64((d-1)/time.Millisecond) + 1
}

// NextRetry says whether an activity is tried again after its attempt (from 1) failed with f, and how long later. p is as recorded in
// history; nil is never again. It serves dispatchers.
func NextRetry(p *history.RetryPolicy, attempt int, f *history.Failure) (delay time.Duration, again bool) {
	return replay.NextRetry(p, attempt, f)
}
