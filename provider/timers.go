package provider

import (
	"context"
	"iter"
	"time"
)

// Timers is for the function or process that receives timers.
type Timers interface {
	// DecodeTimers decodes the records of the timers queue. It returns unreadable records separately. Pass them to
	// DeadLetter.
	DecodeTimers(records []Record) (timers []LockedTimer, unreadable []Unreadable)
	// HoldTimers sends timers to the timers queue again. They become visible less than a second before they are due, or
	// earlier, to be held again, if they exceed the maximum delay of the provider. The call is idempotent.
	HoldTimers(ctx context.Context, timers ...Timer) error
}

// LockedTimer is a timer with the record that holds its lock.
type LockedTimer struct {
	Timer

	Record Record
}

// Sweeps is for the sweeper, which finds instances that make no progress.
//
// The methods yield a few instances at a time and store their progress, so that an interrupted search continues in the
// next call. A caller must process the yielded instances before it requests the next ones. The methods yield an error
// for items that cannot be read, and continue if possible. Concurrent searches are allowed.
type Sweeps interface {
	// PendingInstances finds instances that were due to run their first turn before the given time and did not (R11).
	// An instance is due when it is started or, if its start is delayed, when the delay ends. Each instance is found
	// again after intervals that double from two minutes to an hour.
	PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]Instance, error]
	// BlockedInstances finds instances that are blocked in another build than the one that reported last (R18). Each
	// instance is found for every new build, and for the same build again after ten minutes, twenty minutes and so on,
	// up to an hour. If there are any, it requests a report of the build from an orchestrator (ReportBuildInstanceID).
	// A build that already reported last within the past hour does not count as new.
	BlockedInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// DeletingInstances finds instances whose deletion has made no progress for two minutes. DeleteInstance completes
	// the deletion (R17).
	DeletingInstances(ctx context.Context) iter.Seq2[[]Instance, error]
}
