package names

import (
	"fmt"
	"time"
)

const (
	minCancelPoll = 10 * time.Millisecond
	maxCancelPoll = 12 * time.Hour // the longest visibility timeout of SQS
	// minRetention is the minimum of WithRetention. Deletion works in whole days.
	minRetention = time.Hour
	// maxDelay equals the maximum delay of a start by a client.
	maxDelay = 3653 * 24 * time.Hour
)

// MustCancelPoll panics if an option sets an interval that is not 10 ms to 12 h.
func MustCancelPoll(option string, d time.Duration) {
	if d < minCancelPoll || d > maxCancelPoll {
		panic(fmt.Sprintf("perdure: %s: %v is out of range; use %v to %v", option, d, minCancelPoll, maxCancelPoll))
	}
}

// MustRetain panics if an option sets a retention of less than one hour.
func MustRetain(option string, d time.Duration) {
	if d < minRetention {
		panic(fmt.Sprintf("perdure: %s: %v is too short; use at least one hour, or RetainForever", option, d))
	}
}

// CheckDelay returns an error if an option sets a delay of an orchestration's start that is not 0 to ten years.
func CheckDelay(option, orchestration string, d time.Duration) error {
	if d < 0 || d > maxDelay {
		return fmt.Errorf("perdure: %s: orchestration %q: %v is out of range; use 0 to %v", option, orchestration, d,
			maxDelay)
	}
	return nil
}
