package workqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/wire"
)

// deduplicationID returns the deduplication ID of a work item. It is the same for an attempt, so that a repeated
// dispatch within SQS's five minutes adds no copy behind the first one. A copy would run before a turn consumes the
// outcome. A resent or recovered work item has another ID.
func deduplicationID(w *provider.WorkItem) string {
	parts := []string{
		"work",
		w.ExecutionID,
		strconv.FormatInt(w.ActivityID, 10),
		strconv.Itoa(w.Attempt),
		strconv.Itoa(w.ResendCount),
	}
	if w.Redrive != nil {
		parts = append(parts, w.Redrive.Record, strconv.Itoa(w.Redrive.Times))
	}
	return table.Digest(parts...)
}

// maxExclusiveDelay is the maximum delay of an attempt in a queue that cannot delay messages. The worker waits for that
// time. Attempts with a longer delay use a timer.
const maxExclusiveDelay = time.Second

// MaxDelay returns the maximum delay of a work item's queue.
func (wq *WorkQueues) MaxDelay(w *provider.WorkItem) time.Duration {
	if w.ExclusiveKey != "" {
		return min(maxExclusiveDelay, wq.queue.MaxDelay)
	}
	return wq.queue.MaxDelay
}

// AddEntries adds work items to the entries of their queues. It sets their hub and signs their tokens.
func (wq *WorkQueues) AddEntries(
	ctx context.Context, items []provider.WorkItem, queues *sqsqueue.Outgoing,
) (refused []provider.OutputFailure, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	tokens, err := wq.tokens.Signer(ctx)
	if err != nil {
		return nil, err
	}

	for i := range items {
		w := &items[i]
		w.Hub = wq.queue.Hub
		w.Token = tokens.Sign(w)

		url, known := wq.queue.WorkQueues[w.Queue]
		if !known {
			refused = append(refused, wq.unknownQueue(w))
			continue
		}
		e, err := Encode(w)
		e.IsEvent = true
		if w.NotBefore != nil && e.Group == "" { // a FIFO queue cannot delay a message
			e.Delay = wq.queue.DelayUntil(*w.NotBefore)
		}
		if err != nil {
			refused = append(
				refused, RejectOutput(w.ActivityID, history.TypePayloadTooLarge, "activity %q: %v", w.Name, err),
			)
			continue
		}
		queues.Add(url, e, len(items)-1-i)
	}
	return refused, nil
}

// unknownQueue returns the rejection of a work item for which the hub has no queue.
func (wq *WorkQueues) unknownQueue(w *provider.WorkItem) provider.OutputFailure {
	if beside, exclusive := history.BaseQueue(w.Queue); exclusive {
		return RejectOutput(w.ActivityID, "ExclusiveQueueError",
			"activity %q has an exclusive key, but hub %q has no FIFO queue for its work queue %q; "+
				"set Exclusive in the WorkQueueProps of %q, and deploy the stack before the code",
			w.Name, wq.queue.Hub, beside, beside)
	}
	return RejectOutput(w.ActivityID, "UnknownQueueError",
		"activity %q: work queue %q does not exist in hub %q; add it to the stack, or correct OnQueue",
		w.Name, w.Queue, wq.queue.Hub)
}

// RejectOutput returns the rejection of the output of an event.
func RejectOutput(id int64, errorType, format string, args ...any) provider.OutputFailure {
	return provider.OutputFailure{
		EventID: id,
		Failure: history.Failure{Type: errorType, Message: fmt.Sprintf(format, args...), NonRetryable: true},
	}
}

// Encode encodes a work item. A work item with an exclusive key is in a FIFO queue, in the message group of its key.
// SQS delivers the next message of a group after the previous one was deleted or became visible again.
func Encode(w *provider.WorkItem) (sqsqueue.Entry, error) {
	doc, err := wire.EncodeWorkItem(w)
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	e, err := sqsqueue.NewEntry(doc, w.ActivityID, sqsqueue.BodyLimitFor(w.Redrive))
	switch {
	case w.ExclusiveKey != "":
		e.Group, e.Dedup, e.InOneBatch = sqsqueue.ExclusiveGroup(w.ExclusiveKey), deduplicationID(w), true
	case w.FairnessKey != "":
		e.Fair = sqsqueue.FairGroup(w.FairnessKey)
	}
	return e, err
}
