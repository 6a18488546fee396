package intake

import "time"

// RetryUnit is the precision with which the time of a retry is stored. The time is rounded up to it.
const RetryUnit = time.Millisecond

// RetryAt returns the due time of an attempt that follows a failure at now after a delay.
func RetryAt(now time.Time, delay time.Duration) time.Time {
	return now.Add(delay + RetryUnit - 1).UTC().Truncate(RetryUnit)
}

// Earlier returns the earlier of two times. A zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
