package replay

import (
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// What a retry policy has where it says nothing.
const (
	DefaultInitialInterval    = time.Second
	DefaultMaxInterval        = time.Hour
	DefaultBackoffCoefficient = 2.0
)

// NextRetry says whether a task is tried again after its attempt (from 1) failed with f, and how long later.
func NextRetry(p *history.RetryPolicy, attempt int, f *history.Failure) (delay time.Duration, again bool) {
	if p == nil || f == nil || p.MaxAttempts > 0 && attempt >= p.MaxAttempts || final(p, f) {
		return 0, false
	}
	return backoff(p, attempt), true
}

// final reports whether trying again does not help, or is not wanted: what was cancelled stays so.
func final(p *history.RetryPolicy, f *history.Failure) bool {
	if f.NonRetryable || f.Type == history.TypeCancelled {
		return true
	}
	for ; f != nil; f = f.Cause {
		if slices.Contains(p.NonRetryable, f.Type) {
			return true
		}
	}
	return false
}

// backoff is computed in floating point, where what is too long is infinite instead of negative.
func backoff(p *history.RetryPolicy, attempt int) time.Duration {
	initial, most, coefficient := float64(p.InitialIntervalMs), float64(p.MaxIntervalMs), p.BackoffCoefficient
	if initial <= 0 {
		initial = float64(DefaultInitialInterval.Milliseconds())
	}
	if most <= 0 {
		most = max(initial, float64(DefaultMaxInterval.Milliseconds()))
	}
	if !(coefficient >= 1) { // not a number, too
		coefficient = DefaultBackoffCoefficient
	}
	const limit = float64(math.MaxInt64 / int64(time.Millisecond) / 2)
	ms := min(initial*math.Pow(coefficient, float64(max(attempt, 1)-1)), most, limit)
	return time.Duration(ms) * time.Millisecond
}
