package provider

import (
	"context"
	"time"
)

// Reconciling is an optional interface of a Provider that restores a hub whose queues or schedules lost messages, for
// example after its table was restored or its queues were replaced.
type Reconciling interface {
	// ReconcileInstance sends everything again that an instance waits for, and that it caused for others: unsettled
	// work items and timers, current attempts, starts and cancels of children, detached starts, and its outcome for its
	// parent. It then wakes an instance that has not ended, and completes a deletion. It is safe to call while turns
	// run, and to repeat. Settled work does not run again. Other work can be sent twice.
	//
	// Detached starts from before r.Since are omitted, because nothing may prevent them from starting twice. r.Since
	// must not be further back than MostBack. Of an instance that continues as new, the last MostPast executions are
	// processed.
	ReconcileInstance(ctx context.Context, instanceID string, r Reconcile) (Reconciled, error)
	// EmptyQueues deletes all schedules, and then all messages of the inbox, the timers queue and the work queues. It
	// returns ErrBusy and deletes nothing if messages are being processed or there are dead letters. Repeat the call
	// while its error is retryable. It continues with the rest and reports what this call deleted. Wait for QuietTime
	// before anything is sent. progress can be nil. It is called sequentially while the call deletes.
	EmptyQueues(ctx context.Context, progress func(Emptied)) (Emptied, error)
}

// Reconcile contains the parameters of ReconcileInstance.
type Reconcile struct {
	// Since is the time from which detached starts and past executions are sent again.
	Since time.Time
	// Run names the reconciliation. It wakes an instance once, even if it is repeated within five minutes. The name of
	// a later reconciliation must sort after it.
	Run string
}

// Reconciled is the result of ReconcileInstance.
type Reconciled struct {
	// Sent is the number of messages, work items and timers that were sent, including the wake.
	Sent int
	// Over is true if the instance had ended, Old if it ended before Since, Deleted if its deletion was completed, and
	// Gone if the instance does not exist.
	Over, Old, Deleted, Gone bool
	// LeftOut is the number of detached starts and events for other instances that were omitted because they are from
	// before Since. Cut is true if past executions were omitted because there are more than MostPast.
	LeftOut int
	Cut     bool
	// Lost is the number of children that do not exist and whose starts are from before MostBack, so that it is not
	// known whether they ran. Their starts can no longer succeed, and the instance receives history.TypeOutcomeLost.
	Lost int
	// Refused are outputs that no queue of the hub accepts, for example of a work queue that does not exist. The
	// instance's next turn records them as failed.
	Refused []OutputFailure
}

// Emptied is the number of messages, approximately and by queue, and of schedules that EmptyQueues deleted.
type Emptied struct {
	Messages  map[string]int
	Schedules int
}

const (
	// MostBack is the maximum age of Reconcile.Since. The tombstone of a purged instance lasts for 30 days.
	MostBack = 28 * 24 * time.Hour
	// MostPast is the number of past executions of an instance that are processed.
	MostPast = 100
	// QuietTime is how long nothing may be sent after EmptyQueues. SQS can delete messages for a minute, and then drops
	// repetitions of deleted messages for five minutes.
	QuietTime = time.Minute + 5*time.Minute + 10*time.Second
)
