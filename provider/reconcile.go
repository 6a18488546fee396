package provider

import (
	"context"
	"time"
)

// Reconciler is an optional interface of a Provider. It repairs a hub whose queues or schedules lost messages, for
// example after its table was restored or its queues were replaced.
type Reconciler interface {
	// ReconcileInstance sends all outstanding work and outputs of an instance again. These are unsettled work items and
	// timers, current attempts, starts and cancels of children, detached starts, and the outcome for the parent. It
	// then wakes an instance that has not ended, and completes a deletion. The call is safe while turns run, and can be
	// repeated. Settled work does not run again. Other work can be sent twice.
	//
	// Detached starts before r.Since are omitted, because they could start twice. r.Since must not be older than
	// MaxReconcileLookback. If an instance continues as new, its last MaxPastExecutions executions are processed.
	ReconcileInstance(ctx context.Context, instanceID string, r ReconcileOptions) (ReconcileResult, error)
	// PurgeQueues deletes all schedules, and then all messages of the inbox, the timers queue and the work queues. It
	// returns ErrBusy and deletes nothing if messages are being processed or dead letters exist. It observes the queues
	// for over a minute first, because their counts can be a minute old. Repeat the call while its error is retryable.
	// A repeated call deletes the remaining items, and returns only their number. Wait for QueuePurgeCooldown before
	// you send messages. progress receives the counts so far, from one goroutine at a time. It can be nil.
	PurgeQueues(ctx context.Context, progress func(QueuePurgeResult)) (QueuePurgeResult, error)
}

// ReconcileOptions contains the parameters of ReconcileInstance.
type ReconcileOptions struct {
	// Since is the time from which detached starts and past executions are sent again.
	Since time.Time
	// Run is the name of the reconciliation. A reconciliation wakes each instance once, even if it is repeated within
	// five minutes. The name of a later reconciliation must sort after the name of an earlier one.
	Run string
}

// ReconcileResult is the result of ReconcileInstance.
type ReconcileResult struct {
	// Sent is the number of messages, work items and timers that were sent, including the wake.
	Sent int
	// Ended is true if the instance had ended. EndedBeforeSince is true if the instance ended before Since. Deleted is
	// true if the call completed the deletion of the instance. NotFound is true if the instance does not exist.
	Ended, EndedBeforeSince, Deleted, NotFound bool
	// SkippedOutputs is the number of detached starts and events for other instances that were omitted because they are
	// older than Since. Truncated is true if past executions were omitted because the instance has more than
	// MaxPastExecutions.
	SkippedOutputs int
	Truncated      bool
	// LostChildren is the number of children that do not exist and whose starts are older than MaxReconcileLookback.
	// Their outcome is unknown. Their starts cannot succeed anymore, and the instance receives a failure of type
	// history.TypeOutcomeLost.
	LostChildren int
	// RejectedOutputs are outputs that no queue of the hub accepts, for example of a work queue that does not exist.
	// The instance's next turn records them as failed.
	RejectedOutputs []OutputFailure
}

// QueuePurgeResult contains the number of schedules and the approximate number of messages, by queue, that PurgeQueues
// deleted.
type QueuePurgeResult struct {
	Messages  map[string]int
	Schedules int
}

const (
	// MaxReconcileLookback is the maximum age of ReconcileOptions.Since. The tombstone of a purged instance lasts for
	// 30 days.
	MaxReconcileLookback = 28 * 24 * time.Hour
	// MaxPastExecutions is the maximum number of past executions of an instance that are processed.
	MaxPastExecutions = 100
	// QueuePurgeCooldown is the time after PurgeQueues during which no messages may be sent. SQS can delete messages
	// for a minute, and then drops copies of deleted messages for five minutes.
	QueuePurgeCooldown = time.Minute + 5*time.Minute + 10*time.Second
)
