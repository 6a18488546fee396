package provider

import (
	"context"
	"time"
)

// Reconciler is an optional interface of a Provider that restores a hub whose queues or schedules lost messages, for
// example after its table was restored or its queues were replaced.
type Reconciler interface {
	// ReconcileInstance sends everything again that an instance waits for, and that it caused for others: unsettled
	// work items and timers, current attempts, starts and cancels of children, detached starts, and its outcome for its
	// parent. It then wakes an instance that has not ended, and completes a deletion. It is safe to call while turns
	// run, and to repeat. Settled work does not run again. Other work can be sent twice.
	//
	// Detached starts from before r.Since are omitted, because they could start twice. r.Since must not be further back
	// than MaxReconcileLookback. If an instance continues as new, its last MaxPastExecutions executions are processed.
	ReconcileInstance(ctx context.Context, instanceID string, r ReconcileOptions) (ReconcileResult, error)
	// PurgeQueues deletes all schedules, and then all messages of the inbox, the timers queue and the work queues. It
	// returns ErrBusy and deletes nothing if messages are being processed or there are dead letters. Repeat the call
	// while its error is retryable. It continues with the rest and reports what this call deleted. Wait for
	// QueuePurgeCooldown before anything is sent. progress can be nil. It is called sequentially while the call
	// deletes.
	PurgeQueues(ctx context.Context, progress func(QueuePurgeResult)) (QueuePurgeResult, error)
}

// ReconcileOptions contains the parameters of ReconcileInstance.
type ReconcileOptions struct {
	// Since is the time from which detached starts and past executions are sent again.
	Since time.Time
	// Run names the reconciliation. It wakes an instance once, even if it is repeated within five minutes. The name of
	// a later reconciliation must sort after it.
	Run string
}

// ReconcileResult is the result of ReconcileInstance.
type ReconcileResult struct {
	// Sent is the number of messages, work items and timers that were sent, including the wake.
	Sent int
	// Ended is true if the instance had ended, and EndedBeforeSince if it ended before Since. Deleted is true if its
	// deletion was completed. NotFound is true if the instance does not exist.
	Ended, EndedBeforeSince, Deleted, NotFound bool
	// SkippedOutputs is the number of detached starts and events for other instances that were omitted because they are
	// from before Since. Truncated is true if past executions were omitted because there are more than
	// MaxPastExecutions.
	SkippedOutputs int
	Truncated      bool
	// LostChildren is the number of children that do not exist and whose starts are older than MaxReconcileLookback, so
	// that it is not known whether they ran. Their starts can no longer succeed, and the instance receives
	// history.TypeOutcomeLost.
	LostChildren int
	// RejectedOutputs are outputs that no queue of the hub accepts, for example of a work queue that does not exist.
	// The instance's next turn records them as failed.
	RejectedOutputs []OutputFailure
}

// QueuePurgeResult is the number of messages, approximately and by queue, and of schedules that PurgeQueues deleted.
type QueuePurgeResult struct {
	Messages  map[string]int
	Schedules int
}

const (
	// MaxReconcileLookback is the maximum age of ReconcileOptions.Since. The tombstone of a purged instance lasts for
	// 30 days.
	MaxReconcileLookback = 28 * 24 * time.Hour
	// MaxPastExecutions is the number of past executions of an instance that are processed.
	MaxPastExecutions = 100
	// QueuePurgeCooldown is the time after PurgeQueues in which nothing may be sent. SQS can delete messages for a
	// minute, and then drops repetitions of deleted messages for five minutes.
	QueuePurgeCooldown = time.Minute + 5*time.Minute + 10*time.Second
)
