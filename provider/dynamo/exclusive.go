package dynamo

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Work items with an exclusive key are in a FIFO queue, in the message group of their key: SQS delivers what is behind a message of the group once
// that is deleted, or visible again.

// workID is the deduplication id of a work item: one of an attempt, so that a dispatch which is repeated within SQS's five minutes adds no copy behind
// the first, which would run before any turn has taken its outcome. What is sent anew, or picked up, has one of its own.
func workID(w *provider.WorkItem) string {
	parts := []string{"work", w.ExecutionID, strconv.FormatInt(w.ActivityID, 10), strconv.Itoa(w.Attempt), strconv.Itoa(w.ResendCount)}
	if w.Redrive != nil {
		parts = append(parts, w.Redrive.Record, strconv.Itoa(w.Redrive.Times))
	}
	return digest(parts...)
}

// longestAhead is how far away the time of an attempt may be that is sent to a queue which cannot delay: its worker waits for so long. Others come by a
// timer.
const longestAhead = time.Second

// longestDelayOf is how long the queue of a work item can delay it.
func (p *Provider) longestDelayOf(w *provider.WorkItem) time.Duration {
	if w.ExclusiveKey != "" {
		return min(longestAhead, p.longestDelay)
	}
	return p.longestDelay
}

// isFIFO reports whether a queue of the hub, and that of its dead letters, is a FIFO queue.
func isFIFO(queue string) bool {
	_, exclusive := history.BaseQueue(queue)
	return exclusive || queue == provider.QueueInbox
}
