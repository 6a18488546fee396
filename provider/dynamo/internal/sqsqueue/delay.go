package sqsqueue

import (
	"time"
)

// DelayUntil returns the delay of a message, rounded down. The receiver waits for the rest of the second, so that a
// timer is exact and not a second late.
func (qs *Queues) DelayUntil(at time.Time) int32 {
	return int32(min(max(at.Sub(qs.now()), 0), qs.MaxDelay) / time.Second)
}
