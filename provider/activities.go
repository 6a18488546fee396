package provider

import (
	"context"
)

// Activities stores facts about activities outside the history, and reads which activities are cancelled or settled.
// Clients, turns and workers use it.
type Activities interface {
	// ReadActivityRecord reads the record of an activity with strong consistency. If the record does not exist, only
	// ActivityID is set.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (ActivityRecord, error)
	// PutActivityRecords writes the non-zero fields of each record and keeps the stored values of the other fields. It
	// skips a record with OutcomeNeverStarted if another outcome is stored. It also skips a record with a
	// LastHeartbeatAt before the stored one. Records are written separately. If only some records were written, the
	// error reports it, and the caller can repeat the call with all records.
	PutActivityRecords(ctx context.Context, executionID string, records ...ActivityRecord) error
	// ReadRetry reads the current attempt of an activity that has failed before, with strong consistency. If the
	// activity has not failed, only ActivityID is set.
	ReadRetry(ctx context.Context, executionID string, activityID int64) (ActivityRetry, error)
	// ReadCancels reads the part of an execution's cancel record for activities that were scheduled in segment from or
	// later. The read is strongly consistent. cancels contains the decisions of the turns of these segments in order,
	// and all open decisions. It is empty if nothing was cancelled.
	//
	// next is the segment from which a caller can continue without missing a decision. Decisions can become visible in
	// a different order. next therefore follows the last decision without a gap before it (Turn.CancelsAfter).
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// PollCancels is like ReadCancels at half the price, with eventual consistency. It can miss recent decisions.
	// Missed decisions are at next or later, so that a later call finds them.
	PollCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// ReadSettled reads the events that an execution settled in segment from or later, with strong consistency.
	// Settlements.Next equals from if that segment does not exist. It returns ErrCorrupt if the segment cannot be read.
	ReadSettled(ctx context.Context, executionID string, from int64) (Settlements, error)
}
