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
// The zero value of a whole policy is endless: what fails is tried again after about a second, two, four, and so on, then once an
// hour, for as long as the instance lives. Limit it by MaxAttempts, by WithScheduleToClose (of an activity: for all attempts and
// waits together), or by a cancel.
//
// Some failures are never tried again, whatever the policy: those marked with NonRetryable, those named in the field of that name,
// values that do not encode or decode or are too large, poison (an activity that took its process down again and again), and
// cancellations. A panic and a TimeoutError of one attempt are tried again.
type RetryPolicy struct {
	// MaxAttempts counts all attempts, the first too. 0 is no limit: it is tried until it succeeds, is cancelled, or
	// fails with an error that is not tried again. 1 is no retry.
	MaxAttempts int
	// InitialInterval is the time between the first attempt's end and the second attempt; by default a second. Intervals are
	// rounded up to whole milliseconds.
	InitialInterval time.Duration
	// MaxInterval caps the intervals; by default an hour, or InitialInterval where that is longer.
	MaxInterval time.Duration
	// BackoffCoefficient is how much longer each interval is than the one before, 1 or more; by default 2.
	BackoffCoefficient float64
	// Jitter is the part of each interval that is left to chance, above 0 and up to 1, so that what failed together is not tried again
	// together: each wait is chosen at random, evenly, between (1 - Jitter) of the interval and all of it. By default 0.2, between
	// 80 % and 100 %; with 1 it may be anything up to the interval. NoJitter is none: every wait is the interval.
	//
	// The choice depends on the execution, the call and the attempt alone: made again it comes to the same time. In
	// perduretest there is no jitter, so that tests can expect exact times, unless they ask for it.
	Jitter float64
	// NonRetryable are the names of error types (ActivityError.Type says how errors are named) that are not tried again, be it the
	// error itself or one that it wraps or joins.
	NonRetryable []string
}

// NoJitter is a Jitter of a RetryPolicy or PollPolicy that has every wait be exactly its interval.
const NoJitter = -1

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
// A negative value, a MaxInterval below InitialInterval, a BackoffCoefficient below 1, a Jitter above 1 or negative other than
// NoJitter, and an empty name in NonRetryable panic.
func WithRetry(p RetryPolicy) CallOption {
	if wrong := p.wrong(); wrong != "" {
		panic("perdure: WithRetry: " + wrong)
	}
	initial := cmp.Or(p.InitialInterval, min(replay.DefaultInitialInterval, cmp.Or(p.MaxInterval, replay.DefaultInitialInterval)))
	return retryOption{&history.RetryPolicy{
		MaxAttempts:        p.MaxAttempts,
		InitialIntervalMs:  replay.Milliseconds(initial),
		MaxIntervalMs:      replay.Milliseconds(cmp.Or(p.MaxInterval, max(replay.DefaultMaxInterval, initial))),
		BackoffCoefficient: cmp.Or(p.BackoffCoefficient, replay.DefaultBackoffCoefficient),
		NonRetryable:       slices.Clone(p.NonRetryable),
		Jitter:             max(cmp.Or(p.Jitter, replay.DefaultJitter), 0),
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
	case p.Jitter != NoJitter && !(p.Jitter >= 0 && p.Jitter <= 1):
		return fmt.Sprintf("Jitter %v is neither NoJitter nor a number from 0 to 1", p.Jitter)
	case slices.Contains(p.NonRetryable, ""):
		return "NonRetryable has an empty name"
	default:
		return ""
	}
}
