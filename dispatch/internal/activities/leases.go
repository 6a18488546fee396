package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// lease is a short lock of a record. The visibility timeout of a work queue covers a whole invocation. Without a lease,
// the records of a worker that crashed would stay locked for that time. Activities that run for less than a few seconds
// need no lease. The record stores the end of the lock (provider.LockHold).
type lease struct {
	// owned is true if the worker renews the lock. The lock of a polled record is renewed by its poller.
	owned    bool
	renewAt  time.Time
	renewing bool
	// endedAt is when the ended hold of a polled record was observed.
	endedAt time.Time
}

func (l *lease) schedule(at time.Time) { l.renewAt = at }

// isReleasing reports whether the hold of a polled record may have ended because its poller is stopping. A poller first
// releases the records and then ends the contexts. In this case, the lock is not lost.
func (l *lease) isReleasing(now time.Time, limit time.Duration) bool {
	if l.endedAt.IsZero() {
		l.endedAt = now
	}
	return now.Sub(l.endedAt) < limit
}

// leases renews the leases of the records that run in a worker. The supervisor's lock guards it.
type leases struct {
	supervisor *supervisor
	provider   provider.Provider
}

// renewTogether is the maximum time between the due times of leases that are renewed in one call.
const renewTogether = time.Second

// takeEarly takes the leases of all redelivered records of a batch in one call, before their activities start. Without
// these leases, a crash of one activity would lock all the records for a whole invocation.
func (l *leases) takeEarly(b *batch) {
	s := l.supervisor
	var tasks []*task
	s.Lock()
	defer s.Unlock()
	for i := range b.tasks {
		t := &b.tasks[i]
		if !t.lease.owned || !t.needsMarker() && !t.key.MayCrash() {
			continue
		}
		t.item.Record.Hold = provider.NewHold(s.options.Clock(), s.options.LockTimeout)
		t.lease.renewAt = l.firstRenewal(t)
		s.WakeAt(t.lease.renewAt)
		tasks = append(tasks, t)
	}
	if len(tasks) > 0 {
		b.leased = make(chan struct{})
		s.inBackground(b, func(ctx context.Context) { l.takeAll(ctx, b, tasks) })
	}
}

func (l *leases) takeAll(ctx context.Context, b *batch, tasks []*task) {
	defer close(b.leased)
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		items[i] = *t.item
	}
	o := l.supervisor.options
	// the hold of a lost record ends, so that its activity does not start
	if _, err := l.extend(ctx, items); err != nil && ctx.Err() == nil { // otherwise the batch has ended
		o.Logger.WarnContext(ctx, "activity lease failed, retrying", "event", logevent.ActivityLeaseFailed,
			"queue", o.Queue, "records", len(tasks), "error", err)
	}
}

// extend extends the locks of work items. It takes half of the remaining time, so that a call that hangs is retried.
func (l *leases) extend(ctx context.Context, items []provider.LockedWorkItem) ([]provider.Renewal, error) {
	o := l.supervisor.options
	ctx, stop := context.WithTimeout(ctx, o.LockRenewalBuffer/2)
	defer stop()
	return l.provider.RenewWorkItemLocks(ctx, o.Queue, o.LockTimeout, items...)
}

// firstRenewal returns the time at which the lease of a starting activity is taken, or first renewed.
func (l *leases) firstRenewal(t *task) time.Time {
	o := l.supervisor.options
	if t.lease.owned && t.item.Record.Hold != nil {
		return t.item.Record.LockedUntil().Add(-o.LockRenewalBuffer)
	}
	return t.startedAt.Add(o.LeaseAfter)
}

func (l *leases) check(t *task, now time.Time) {
	h := t.item.Record.Hold
	if t.stop.lockLost || h == nil || t.item.Record.Held(now) {
		t.lease.endedAt = time.Time{}
		return
	}
	if h.Ended() && !t.lease.owned && t.lease.isReleasing(now, l.supervisor.options.writeInterval()/2) {
		return
	}
	l.supervisor.loseLock(t, now)
}

// renewDue starts the renewals of a batch that are due, and returns the due time of the next ones.
func (l *leases) renewDue(b *batch, now time.Time) (next time.Time) {
	var together []*task
	due := false
	for i := range b.tasks {
		t := &b.tasks[i]
		if !t.needsRenewal() || t.lease.renewing {
			continue
		}
		if t.lease.renewAt.After(now.Add(renewTogether)) {
			next = intake.Earlier(next, t.lease.renewAt)
			continue
		}
		together = append(together, t)
		due = due || !t.lease.renewAt.After(now)
	}

	if due {
		l.renew(b, together, now)
		return next
	}
	for _, t := range together {
		next = intake.Earlier(next, t.lease.renewAt)
	}
	return next
}

// needsRenewal reports whether the worker renews the lock of a task. The worker renews the lock while the task runs. It
// also renews the lock while the task waits for its exclusive key, because its record blocks the key. If the task has a
// lease, the worker renews the lock until the record is deleted.
func (t *task) needsRenewal() bool {
	if !t.lease.owned || t.stop.lockLost {
		return false
	}
	h := t.item.Record.Hold
	return t.phase == phaseRunning || t.key.IsWaiting() || t.phase != phaseSettled && h != nil && !h.Ended()
}

func (l *leases) renew(b *batch, tasks []*task, now time.Time) {
	s, o := l.supervisor, l.supervisor.options
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		if t.item.Record.Hold == nil {
			t.item.Record.Hold = provider.NewHold(now, o.LockTimeout)
		}
		t.lease.renewing = true
		items[i] = s.renewalItem(t)
	}
	s.cancels.Skip(executionsOf(tasks), now)
	s.inBackground(b, func(ctx context.Context) {
		renewals, err := l.extend(ctx, items)
		if ctx.Err() == nil { // otherwise the batch has ended
			l.renewed(b, tasks, now, renewals, err)
		}
	})
}

// renewed handles the results of renewals that started at the given time. Each renewal replaces a cancel poll.
func (l *leases) renewed(b *batch, tasks []*task, started time.Time, renewals []provider.Renewal, err error) {
	s := l.supervisor
	s.Lock()
	now := s.options.Clock()
	if err == nil {
		s.cancels.Renewed(executionsOf(tasks), started)
	}
	for i, t := range tasks {
		t.lease.renewing = false
		t.lease.renewAt = l.nextRenewal(t, now)
		if err != nil {
			s.cancels.PollNow(t.item.ExecutionID, now)
		}
		switch {
		case i >= len(renewals):
		case !renewals[i].Lost:
			if t.phase == phaseRunning {
				s.stopIfCancelled(t, renewals[i].Cancel, now)
			}
		case t.phase == phaseRunning:
			s.loseLock(t, now)
		case t.phase == phaseWaiting: // its hold has ended, so it does not start
		default:
			t.phase = phaseSettled
		}
	}
	s.Unlock()

	if err != nil {
		s.options.Logger.WarnContext(b.ctx, "activity lease renewal failed, retrying",
			"event", logevent.ActivityLeaseRenewalFailed, "queue", s.options.Queue, "records", len(tasks), "error", err)
	}
	for i := range renewals {
		if renewals[i].Lost {
			tasks[i].Log().ErrorContext(b.ctx, "activity lease lost, ignoring its result",
				"event", logevent.ActivityLeaseLost, "queue", s.options.Queue, "record", tasks[i].item.Record.ID)
		}
	}
	s.Check()
}

// nextRenewal returns the time of a lease's next renewal. A failed renewal is retried soon.
func (l *leases) nextRenewal(t *task, now time.Time) time.Time {
	buffer := l.supervisor.options.LockRenewalBuffer
	soon := now.Add(buffer / intake.RenewalTries)
	if at := t.item.Record.LockedUntil().Add(-buffer); at.After(soon) {
		return at
	}
	return soon
}

// renewalItem returns the work item of a task for a renewal, which also reads whether the activity is cancelled.
func (s *supervisor) renewalItem(t *task) provider.LockedWorkItem {
	it := *t.item
	if from, ok := s.cancels.CancelsFrom(it.ExecutionID); ok {
		it.CancelsFrom = from
	}
	return it
}

// executionsOf returns the execution of each running task. Tasks may be nil.
func executionsOf(tasks []*task) []string {
	ids := make([]string, 0, len(tasks))
	for _, t := range tasks {
		if t != nil && t.phase == phaseRunning {
			ids = append(ids, t.item.ExecutionID)
		}
	}
	return ids
}
