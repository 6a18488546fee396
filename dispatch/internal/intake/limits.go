package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/sleep"
)

// MaxTimerWait is the maximum time for which a function itself waits for a timer. Queues delay by whole seconds, and
// the function waits for the rest.
const MaxTimerWait = 1500 * time.Millisecond

// WaitUntil waits until the given time or until ctx ends.
func WaitUntil(ctx context.Context, clock func() time.Time, at time.Time) error {
	left := at.Sub(clock())
	if left <= 0 {
		return nil
	}
	if err := sleep.For(ctx, left); err != nil {
		return fmt.Errorf("dispatch: wait until %v: %w", at, err)
	}
	return nil
}

// Reserve is the time at the end of an invocation that is reserved for sending the outcomes of its activities.
const Reserve = 2 * time.Second

// WriteTimeout is the time limit of a write for one activity: half of the Reserve.
const WriteTimeout = Reserve / 2

// CloseMessage is the message of the failure of an activity whose schedule-to-close timeout expired. Every component
// that detects the timeout uses it.
const CloseMessage = "schedule-to-close timeout expired"

// TimedOut returns the failure of an activity whose timeout expired.
func TimedOut(message string) *history.Failure {
	return &history.Failure{Type: history.TypeTimeout, Message: message}
}

// A lock is renewed after a third of its length. A renewal that failed is retried after a tenth of it.
const (
	Renewals     = 3
	RenewalTries = 10
)

// RetryUnit is the precision with which the time of a retry is stored. The time is rounded up to a multiple of
// RetryUnit.
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
