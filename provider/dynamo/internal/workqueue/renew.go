package workqueue

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
)

// cancelRead is the part of an execution's cancel record that its work items have not read.
type cancelRead struct {
	from    int64
	cancels provider.Cancels
	err     error
}

// RenewLocks extends the visibility of the records and reads the cancel record of each execution once, concurrently. If
// there are more items than a worker receives at once, it limits the number of failing calls. The limits of the locks
// and of the reads are separate, so that the locks do not wait for the reads.
func (wq *WorkQueues) RenewLocks(
	ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
) ([]provider.Renewal, error) {
	locking, reading := ctx, ctx
	if len(items) > sqsqueue.BatchLimit {
		locking, reading = awscall.WithRetryBudget(ctx), awscall.WithRetryBudget(ctx)
	}

	records := make([]provider.Record, len(items))
	requested := map[string]*cancelRead{}
	for i := range items {
		it := &items[i]
		if records[i] = it.Record; it.ExecutionID == "" {
			continue
		}
		from := max(it.Segment, it.CancelsFrom)
		if x := requested[it.ExecutionID]; x != nil {
			x.from = min(x.from, from)
		} else {
			requested[it.ExecutionID] = &cancelRead{from: from}
		}
	}

	renewals := make([]provider.Renewal, len(items))
	calls, err := wq.queue.RenewCalls(locking, queue, lock, records, renewals)
	if err != nil {
		return nil, err
	}
	for _, executionID := range slices.Sorted(maps.Keys(requested)) {
		x := requested[executionID]
		calls = append(calls, func() error {
			x.cancels, _, x.err = wq.cancels.ReadCancels(reading, executionID, x.from)
			return x.err
		})
	}
	err = awscall.Parallel(calls...)
	for i := range items {
		if x := requested[items[i].ExecutionID]; x != nil {
			renewals[i].Cancel = x.cancels.Of(items[i].ActivityID)
			renewals[i].CancelErr = x.err
		}
	}
	return renewals, err
}
