package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/sleep"
)

// WaitHere is the longest a timer is waited out in the function. Queues delay by whole seconds: the rest is waited here.
const WaitHere = 1500 * time.Millisecond

// WaitUntil waits in the function until a time, or until ctx ends.
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

// Reserve is what an invocation keeps of its time to send how its activities ended.
const Reserve = 2 * time.Second

// CloseMessage is the message of the failure of an activity whose schedule-to-close time is over, wherever that is found.
const CloseMessage = "schedule-to-close timeout expired"

// TimedOut is the failure of an activity whose time is over.
func TimedOut(message string) *history.Failure {
	return &history.Failure{Type: history.TypeTimeout, Message: message}
}

// A renewal comes every third of a lock, and one that failed is tried again after a tenth.
const (
	Renewals     = 3
	RenewalTries = 10
)
