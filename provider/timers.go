package provider

import (
	"context"
	"iter"
	"time"
)

// Timers decodes and delays timers. The function or process that receives timers uses it.
type Timers interface {
	// DecodeTimers decodes the records of the timers queue. It returns unreadable records separately. Pass unreadable
	// records to DeadLetter.
	DecodeTimers(records []Record) (timers []LockedTimer, unreadable []Unreadable)
	// HoldTimers sends timers to the timers queue again. They become visible less than a second before they are due. If
	// the delay exceeds the maximum delay of the provider, they become visible earlier, and the receiver holds them
	// again. The call is idempotent.
	HoldTimers(ctx context.Context, timers ...Timer) error
}

// LockedTimer is a timer with the record that holds its lock.
type LockedTimer struct {
	Timer

	Record Record
}

// Sweeps finds instances that make no progress. The sweeper uses it.
//
// The methods yield a few instances at a time and store their progress, so that an interrupted search continues in the
// next call. A caller must process the yielded instances before it requests the next ones. The methods yield an error
// for items that cannot be read, and continue if possible. Concurrent searches are allowed.
type Sweeps interface {
	// PendingInstances finds instances whose first turn was due before the given time and has not run (R11). An
	// instance is due when it is started or, if its start is delayed, when the delay ends. Each instance is found again
	// after intervals that double from two minutes to an hour.
	PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]Instance, error]
	// BlockedInstances finds instances that were blocked by a different build than the last one that reported (R18).
	// Each instance is found for every new build, and again for the same build after intervals of ten minutes to an
	// hour. If it finds instances, it requests an orchestrator to report its build (ReportBuildInstanceID). A build
	// that was already the last one to report within the past hour does not count as new.
	BlockedInstances(ctx context.Context) iter.Seq2[[]Instance, error]
	// UnblockInstance sets an instance's status to running, and removes what BlockInstance has stored. It does nothing
	// if the execution is not the instance's current one, or the instance is paused or has ended.
	UnblockInstance(ctx context.Context, instanceID, executionID string) error
	// DeletingInstances finds instances whose deletion has made no progress for two minutes. DeleteInstance completes
	// the deletion (R17).
	DeletingInstances(ctx context.Context) iter.Seq2[[]Instance, error]
}
