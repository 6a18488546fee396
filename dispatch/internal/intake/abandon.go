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

// laterReleaseTries is how often a message of an unknown kind is left for another environment to take, which while a release is
// deployed may be newer than this: about a minute.
const laterReleaseTries = 5

// DeadLetter sets aside records that cannot be read, so that none blocks its group, and returns those that could not be.
func DeadLetter(ctx context.Context, b *Base, queue string, unreadable []provider.Unreadable) (failed []provider.Record) {
	for _, u := range unreadable {
		if _, later := errors.AsType[*provider.UnknownKindError](u.Err); later && u.Record.ReceiveCount <= laterReleaseTries {
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

// Abandon makes failed records visible again, each after as long as its deliveries say, and returns their ids.
func Abandon(ctx context.Context, b *Base, queue string, records []provider.Record) (failed []string) {
	return AbandonAfter(ctx, b, queue, records, func(r *provider.Record) time.Duration { return RetryDelay(r.ReceiveCount) })
}

// AbandonAfter makes records visible again, each after a delay of its own, and returns their ids.
func AbandonAfter(ctx context.Context, b *Base, queue string, records []provider.Record, delay func(*provider.Record) time.Duration) (failed []string) {
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

// ByDelay goes through records by how many seconds they stay invisible, the shortest first.
func ByDelay(records []provider.Record, delay func(*provider.Record) time.Duration) iter.Seq2[time.Duration, []provider.Record] {
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

// A handled error is tried again in seconds; visibility alone would make it minutes (R19). What goes on failing waits longer
// and longer: a hundred deliveries, after which a queue gives a message up, then outlast a night.
const (
	firstRetryDelay   = 2 * time.Second
	LongestRetryDelay = 5 * time.Minute
)

// RetryDelay is how long a record that failed in its n-th delivery stays invisible.
func RetryDelay(n int) time.Duration {
	return min(firstRetryDelay<<min(max(n-1, 0), 8), LongestRetryDelay)
}
