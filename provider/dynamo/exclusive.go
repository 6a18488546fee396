package dynamo

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Work items with an exclusive key are in a FIFO queue, in the message group of their key. SQS delivers the next
// message of a group after the previous one was deleted or became visible again.

// workID returns the deduplication ID of a work item. It is the same for an attempt, so that a repeated dispatch within
// SQS's five minutes adds no copy behind the first one. The copy would run before a turn consumes the outcome. A resent
// or recovered work item has another ID.
func workID(w *provider.WorkItem) string {
	parts := []string{"work", w.ExecutionID, strconv.FormatInt(w.ActivityID, 10), strconv.Itoa(w.Attempt), strconv.Itoa(w.ResendCount)}
	if w.Redrive != nil {
		parts = append(parts, w.Redrive.Record, strconv.Itoa(w.Redrive.Times))
	}
	return table.Digest(parts...)
}

// longestAhead is the maximum time until an attempt is due if its queue cannot delay messages: its worker waits that
// long. Later attempts use a timer.
const longestAhead = time.Second

// longestDelayOf returns the maximum delay of a work item's queue.
func (p *Provider) longestDelayOf(w *provider.WorkItem) time.Duration {
	if w.ExclusiveKey != "" {
		return min(longestAhead, p.queue.MaxDelay)
	}
	return p.queue.MaxDelay
}
