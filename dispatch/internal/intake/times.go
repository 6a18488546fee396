package intake

import "time"

// RetryUnit is what the time of a retry is rounded up to: as exact as it is stored.
const RetryUnit = time.Millisecond

// RetryAt is when an attempt is due that follows a failure now after a delay.
func RetryAt(now time.Time, delay time.Duration) time.Time {
	return now.Add(delay + RetryUnit - 1).UTC().Truncate(RetryUnit)
}

// Earlier is the earlier of two times, of which zero is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
