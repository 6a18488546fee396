package provider

import (
	"context"
)

// Activities is for clients, turns and workers: it stores facts about activities apart from history, and reads whether
// activities are cancelled or settled.
type Activities interface {
	// ReadActivityRecord reads the record of an activity with strong consistency. If there is none, only ActivityID is
	// set.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (ActivityRecord, error)
	// PutActivityRecords writes the non-zero fields of each record and keeps the stored values of the other fields. It
	// does not write a record with OutcomeNeverStarted if another outcome is stored, or a record with a LastHeartbeatAt
	// before the stored one. Records are written separately. If only some were written, the error says so, and the
	// caller can repeat all.
	PutActivityRecords(ctx context.Context, executionID string, records ...ActivityRecord) error
	// ReadRetry reads the current attempt of an activity that has failed before, with strong consistency. If it has not
	// failed, only ActivityID is set.
	ReadRetry(ctx context.Context, executionID string, activityID int64) (ActivityRetry, error)
	// ReadCancels reads the part of an execution's cancel record that concerns activities scheduled in segment from or
	// later, in order and with strong consistency. It contains the decisions of the turns of these segments, and all
	// open decisions. It is empty if nothing was cancelled.
	//
	// next is the segment from which a caller can continue without missing a decision. A decision can become visible
	// later than a later one, so next follows the last decision before which none is missing (Turn.CancelsAfter).
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// PollCancels is like ReadCancels at half the price, with eventual consistency. It can miss recent decisions. They
	// are at next or later, so that a later call finds them.
	PollCancels(ctx context.Context, executionID string, from int64) (cancels Cancels, next int64, err error)
	// ReadSettled reads the events that an execution settled from a segment on, with strong consistency. Next equals
	// from if that segment does not exist. It returns ErrCorrupt if the segment cannot be read.
	ReadSettled(ctx context.Context, executionID string, from int64) (Settlements, error)
}
