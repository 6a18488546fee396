package intake

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// laterReleaseTries is the number of deliveries in which a message of an unknown kind is released. During a deployment,
// another environment may run a newer release that supports the kind. The deliveries take about a minute.
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
