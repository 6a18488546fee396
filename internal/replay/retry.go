package replay

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
)

// PollDelay returns the delay between two checks of a condition. Equal arguments give the same delay, because jitter is
// derived from the execution ID.
func (u Unscoped) PollDelay(p *history.RetryPolicy, attempt int) time.Duration {
	delay, _ := retry.Next(u.x.tasks.Options().RetryPolicy(p), u.x.options.ExecutionID, 0, attempt, &history.Failure{})
	return max(delay, time.Millisecond)
}
