// Package retry decides whether and when a failed attempt is retried.
package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/identity"
)

// Default values of a retry policy.
const (
	DefaultInitialInterval    = time.Second
	DefaultMaxInterval        = time.Hour
	DefaultBackoffCoefficient = 2.0
	DefaultJitter             = 0.2
)

// Next reports whether a task is retried after its attempt (counted from 1) failed with f, and returns the delay
// of the next attempt. id is the event that scheduled the task. Equal arguments give equal results, because jitter is
// derived from the IDs.
func Next(
	p *history.RetryPolicy, executionID string, id int64, attempt int, f *history.Failure,
) (delay time.Duration, again bool) {
	if p == nil || f == nil || p.MaxAttempts > 0 && attempt >= p.MaxAttempts || final(p, f) {
		return 0, false
	}

	interval := backoff(p, attempt)
	if !(p.Jitter > 0) { // also true for NaN
		return interval, true
	}
	seed := identity.Seed("retry", fmt.Sprintf("%s:%d:%d", executionID, id, attempt))
	chance := rand.New(rand.NewChaCha8(seed)).Float64()
	off := float64(interval.Milliseconds()) * min(p.Jitter, 1) * chance
	return interval - time.Duration(off)*time.Millisecond, true
}

// final reports whether a failure is not retried. Cancelled tasks stay cancelled.
func final(p *history.RetryPolicy, f *history.Failure) bool {
	if f.NonRetryable || f.Type == history.TypeCancelled {
		return true
	}
	for name := range f.Types() {
		if slices.Contains(p.NonRetryable, name) {
			return true
		}
	}
	return false
}

// backoff returns the interval after an attempt. It uses floating point, so that a result that is too large is infinite
// and not negative.
func backoff(p *history.RetryPolicy, attempt int) time.Duration {
	initial := float64(p.InitialIntervalMs)
	if initial <= 0 {
		initial = float64(DefaultInitialInterval.Milliseconds())
	}

	most := float64(p.MaxIntervalMs)
	if most <= 0 {
		most = max(initial, float64(DefaultMaxInterval.Milliseconds()))
	}

	coefficient := p.BackoffCoefficient
	if !(coefficient >= 1) { // also true for NaN
		coefficient = DefaultBackoffCoefficient
	}

	const limit = float64(math.MaxInt64 / int64(time.Millisecond) / 2)
	ms := min(initial*math.Pow(coefficient, float64(max(attempt, 1)-1)), most, limit)
	return time.Duration(ms) * time.Millisecond
}
