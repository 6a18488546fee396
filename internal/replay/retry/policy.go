package retry

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// NoJitter disables jitter. A jitter of 0 selects the default.
const NoJitter = -1

// Policy has the fields of perdure.RetryPolicy.
type Policy struct {
	MaxAttempts            int
	InitialInterval        time.Duration
	MaxInterval            time.Duration
	BackoffCoefficient     float64
	Jitter                 float64
	NonRetryableErrorTypes []string
}

// Problem describes the first invalid field. It is empty if the policy is valid.
func (p *Policy) Problem() string {
	problem := cmp.Or(
		negative("MaxAttempts", p.MaxAttempts),
		negative("InitialInterval", p.InitialInterval),
		negative("MaxInterval", p.MaxInterval),
		tooShort(p.MaxInterval, p.InitialInterval),
		badCoefficient(p.BackoffCoefficient),
		badJitter(p.Jitter),
	)
	if problem == "" && slices.Contains(p.NonRetryableErrorTypes, "") {
		return "NonRetryableErrorTypes contains an empty name"
	}
	return problem
}

func negative[T int | time.Duration](field string, v T) string {
	if v < 0 {
		return fmt.Sprintf("%s %v is negative", field, v)
	}
	return ""
}

func tooShort(maxInterval, initialInterval time.Duration) string {
	if maxInterval > 0 && maxInterval < initialInterval {
		return fmt.Sprintf("MaxInterval %v is less than InitialInterval %v", maxInterval, initialInterval)
	}
	return ""
}

func badCoefficient(c float64) string {
	if c != 0 && !(c >= 1 && c <= math.MaxFloat64) {
		return fmt.Sprintf("BackoffCoefficient %v is invalid; use a number of at least 1", c)
	}
	return ""
}

func badJitter(j float64) string {
	if j != NoJitter && !(j >= 0 && j <= 1) {
		return fmt.Sprintf("Jitter %v is invalid; use 0 to 1, or NoJitter", j)
	}
	return ""
}

// Recorded returns the policy in the form that the history records.
func (p *Policy) Recorded() *history.RetryPolicy {
	initial := cmp.Or(p.InitialInterval, min(DefaultInitialInterval, cmp.Or(p.MaxInterval, DefaultInitialInterval)))
	return &history.RetryPolicy{
		MaxAttempts:        p.MaxAttempts,
		InitialIntervalMs:  Milliseconds(initial),
		MaxIntervalMs:      Milliseconds(cmp.Or(p.MaxInterval, max(DefaultMaxInterval, initial))),
		BackoffCoefficient: cmp.Or(p.BackoffCoefficient, DefaultBackoffCoefficient),
		NonRetryable:       slices.Clone(p.NonRetryableErrorTypes),
		Jitter:             max(cmp.Or(p.Jitter, DefaultJitter), 0),
	}
}

// PollPolicy has the fields of perdure.PollPolicy.
type PollPolicy struct {
	Name               string
	MaxAttempts        int
	Timeout            time.Duration
	InitialInterval    time.Duration
	BackoffCoefficient float64
	MaxInterval        time.Duration
	Jitter             float64
}

// defaultPollInterval is the default of PollPolicy.InitialInterval.
const defaultPollInterval = 5 * time.Second

// Problem describes the first invalid field. It is empty if the policy is valid.
func (p *PollPolicy) Problem() string {
	return cmp.Or(
		negative("MaxAttempts", p.MaxAttempts),
		negative("Timeout", p.Timeout),
		negative("InitialInterval", p.InitialInterval),
		badCoefficient(p.BackoffCoefficient),
		negative("MaxInterval", p.MaxInterval),
		tooShort(p.MaxInterval, cmp.Or(p.InitialInterval, defaultPollInterval)),
		badJitter(p.Jitter),
	)
}

// Intervals returns the intervals of the policy as a retry policy.
func (p *PollPolicy) Intervals() *history.RetryPolicy {
	initial := cmp.Or(p.InitialInterval, defaultPollInterval)
	return &history.RetryPolicy{
		InitialIntervalMs:  Milliseconds(initial),
		MaxIntervalMs:      Milliseconds(cmp.Or(p.MaxInterval, max(DefaultMaxInterval, initial))),
		BackoffCoefficient: cmp.Or(p.BackoffCoefficient, 1),
		Jitter:             max(p.Jitter, 0),
	}
}

// After returns the delay of the next check after an attempt. waited is the time since the first attempt. delay is the
// interval of the policy. If the policy allows no further check, last is true, and timedOut reports whether Timeout is
// the limit.
func (p *PollPolicy) After(attempt int, waited, delay time.Duration) (next time.Duration, last, timedOut bool) {
	if p.Timeout > 0 {
		if waited >= p.Timeout {
			return 0, true, true
		}
		delay = min(delay, p.Timeout-waited)
	}
	return delay, p.MaxAttempts > 0 && attempt >= p.MaxAttempts, false
}

// Milliseconds converts a duration to the milliseconds that the history records, rounded up. 0 and negative durations,
// which mean no limit, become 0.
func Milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Millisecond) + 1 // this cannot overflow
}
