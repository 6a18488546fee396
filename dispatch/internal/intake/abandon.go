package intake

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// laterReleaseTries is the number of deliveries in which a message of an unknown kind is released. During a deployment
// another environment may run a newer release that knows the kind. The deliveries take about a minute.
const laterReleaseTries = 5

// DeadLetter moves unreadable records to the dead-letter queue, so that they do not block their groups. It returns the
// records that it could not move or that a later release may be able to read.
func DeadLetter(
	ctx context.Context, b *Base, queue string, unreadable []provider.Unreadable,
) (failed []provider.Record) {
	for _, u := range unreadable {
		if _, later := errors.AsType[*provider.UnknownKindError](u.Err); later &&
			u.Record.ReceiveCount <= laterReleaseTries {
			b.Logger.WarnContext(ctx, "record kind unknown, leaving the record to a newer build",
				"event", logevent.RecordKindUnknown, "queue", queue, "record", u.Record.ID, "error", u.Err)
			failed = append(failed, u.Record)
			continue
		}
		b.Logger.ErrorContext(ctx, "record unreadable, moving it to the dead-letter queue",
			"event", logevent.RecordUnreadable, "queue", queue, "record", u.Record.ID, "error", u.Err)
		if err := b.Provider.DeadLetter(ctx, queue, u); err != nil {
			b.Logger.ErrorContext(ctx, "moving a record to the dead-letter queue failed",
				"event", logevent.RecordDeadLetterFailed, "queue", queue, "record", u.Record.ID, "error", err)
			failed = append(failed, u.Record)
		}
	}
	return failed
}

// Abandon releases failed records to the queue, each with the RetryDelay of its deliveries, and returns their IDs.
func Abandon(ctx context.Context, b *Base, queue string, records []provider.Record) (failed []string) {
	return AbandonAfter(ctx, b, queue, records, func(r *provider.Record) time.Duration {
		return RetryDelay(r.ReceiveCount)
	})
}

// AbandonAfter releases records to the queue with the given delay each, and returns their IDs.
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

// The delays of records that failed with an error (R19). Without them, the visibility timeout would delay a retry by
// minutes. The delay grows with the number of deliveries, so that the hundred deliveries after which a queue drops a
// record take more than a night.
const (
	firstRetryDelay   = 2 * time.Second
	LongestRetryDelay = 5 * time.Minute
)

// RetryDelay returns the delay of a record that failed in its n-th delivery.
func RetryDelay(n int) time.Duration {
	return min(firstRetryDelay<<min(max(n-1, 0), 8), LongestRetryDelay)
}
