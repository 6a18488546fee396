package provider

import (
	"context"
	"time"
)

// Reconciling is what a provider offers, beside Provider, to bring a hub back whose queues or schedules do not hold what
// the history of its instances has caused: after a table was restored to an earlier time, or with new queues.
type Reconciling interface {
	// ReconcileInstance sends again what an instance waits for, and what it has caused for others, whatever was sent
	// before: work items and timers that no event settles, the current attempts of activities that are tried again,
	// starts and cancels of children, detached starts, and its outcome for its parent. It then wakes an instance that is
	// not over, and finishes a deletion. It is harmless while turns run, when it is repeated, and when it dies half way:
	// what is settled does not run again, and what is not may be sent twice.
	//
	// Detached starts from before a time are taken for delivered, and left out: nothing may be left that keeps them from
	// happening again. That time must not be further away than MostBack. Of an instance that continues as new without end, it
	// looks at the last MostPast executions that are over.
	ReconcileInstance(ctx context.Context, instanceID string, r Reconcile) (Reconciled, error)
	// EmptyQueues deletes all schedules, and then all messages of the inbox, the timers queue and the work queues. It returns
	// an error that is ErrBusy, and deletes nothing, while messages are being handled or dead letters are left. The caller
	// repeats it while its error is retryable: it goes on with what is left, and reports what this call has deleted. The caller
	// waits for QuietTime before anything is sent. progress, which may be nil, is called while there is something to delete, one call
	// after the other.
	EmptyQueues(ctx context.Context, progress func(Emptied)) (Emptied, error)
}

// Reconcile says how an instance is reconciled.
type Reconcile struct {
	// Since is the time from which on detached starts count that may not have arrived, and past executions.
	Since time.Time
	// Run names the reconciliation: it wakes an instance once, also when it is repeated within five minutes. A later one has a name
	// that sorts behind it.
	Run string
}

// Reconciled is what came of an instance.
type Reconciled struct {
	// Sent is how many messages, work items and timers were sent, the wake included.
	Sent int
	// Over: the instance was over. Old: it ended before Since. Deleted: its deletion was finished. Gone: there is no such
	// instance.
	Over, Old, Deleted, Gone bool
	// LeftOut is how many detached starts and events for other instances were left out, since they are from before Since. Cut: so were past executions since
	// then, since there are more than MostPast.
	LeftOut int
	Cut     bool
	// Lost is how many children are not there whose starts are from before MostBack, so that nothing may be left which tells whether they have
	// run: their starts may never happen any more, and the instance is told (history.TypeOutcomeLost).
	Lost int
	// Refused are outputs that no queue of the hub takes, such as those of a work queue that it does not have. The
	// instance's next turn records them as failed.
	Refused []OutputFailure
}

// Emptied is how much EmptyQueues has deleted: messages approximately, by queue, and schedules.
type Emptied struct {
	Messages  map[string]int
	Schedules int
}

const (
	// MostBack bounds Reconcile.Since. What keeps a start from happening again after its instance was purged lasts for
	// 30 days.
	MostBack = 28 * 24 * time.Hour
	// MostPast is how many past executions of an instance are looked at. What an execution has caused is in its queue before
	// the next one takes its second message: of what is further away, nothing is left in a queue that keeps up.
	MostPast = 100
	// QuietTime is how long nothing must be sent after queues were emptied: SQS may delete for a minute, and takes a
	// repetition of what was sent less than five minutes before for a message that it has deleted, until the end of that minute.
	QuietTime = time.Minute + 5*time.Minute + 10*time.Second
)
