package intake

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Abandon releases failed records to the queue, each with the RetryDelay of its deliveries, and returns their IDs.
func Abandon(ctx context.Context, b *Base, queue string, records []provider.Record) (failed []string) {
	return AbandonAfter(ctx, b, queue, records, func(r *provider.Record) time.Duration {
		return RetryDelay(r.ReceiveCount)
	})
}

// AbandonAfter releases each record to the queue with the delay that delay returns, and returns the IDs of the records.
func AbandonAfter(
	ctx context.Context, b *Base, queue string, records []provider.Record, delay func(*provider.Record) time.Duration,
) (failed []string) {
	if len(records) == 0 {
		return nil
	}
	for _, r := range records {
		failed = append(failed, r.ID)
	}
	for after, together := range ByDelay(records, delay) {
		if err := b.Provider.AbandonRecords(ctx, queue, after, together...); err != nil {
			b.Logger.WarnContext(ctx, "record release failed, redelivery is delayed",
				"event", logevent.RecordReleaseFailed, "queue", queue, "error", err)
		}
	}
	return failed
}

// ByDelay groups records by their delay in whole seconds, the shortest first.
func ByDelay(
	records []provider.Record, delay func(*provider.Record) time.Duration,
) iter.Seq2[time.Duration, []provider.Record] {
	by := map[time.Duration][]provider.Record{}
	for i := range records {
		d := delay(&records[i]).Truncate(time.Second)
		by[d] = append(by[d], records[i])
	}
	return func(yield func(time.Duration, []provider.Record) bool) {
		for _, d := range slices.Sorted(maps.Keys(by)) {
			if !yield(d, by[d]) {
				return
			}
		}
	}
}

// These are the delays of records that failed with an error (R19). Without them, the visibility timeout would delay a
// retry by minutes. The delay grows with the number of deliveries. SQS moves a record to the dead-letter queue after a
// hundred deliveries, which take about eight hours.
const (
	firstRetryDelay   = 2 * time.Second
	LongestRetryDelay = 5 * time.Minute
)

// RetryDelay returns the delay of a record that failed in its n-th delivery.
func RetryDelay(n int) time.Duration {
	return min(firstRetryDelay<<min(max(n-1, 0), 8), LongestRetryDelay)
}
