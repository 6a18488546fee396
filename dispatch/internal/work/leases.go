package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// lease is a lock that is shorter than what the queue gave: the visibility of a work queue is as long as an invocation may take, and for
// so long the death of a worker would go unnoticed. An activity of less than a few seconds needs none. Until when the lock holds is in
// the record (provider.LockHold).
type lease struct {
	// ours: the worker keeps the lock. That of a record that was fetched is kept by its poller.
	ours     bool
	renewAt  time.Time
	renewing bool
	// looseSince is when the hold of a fetched record was found ended.
	looseSince time.Time
}

// begin sets when the lease is first taken or renewed.
func (l *lease) begin(renewAt time.Time) { l.renewAt = renewAt }

// takeAt has a task leased at a time that has no lease yet. A cancelled activity whose end is waited for has it at once: should its worker die in
// the grace, the lease shows it, and not the end of the invocation.
func (l *lease) takeAt(t *task, at time.Time) {
	if t.item.Record.Hold == nil {
		l.renewAt = at
	}
}

// isLoose reports whether the ended hold of a fetched record may still be that of a poller which is being stopped: it gives back what is
// left, and ends the contexts after. Then the record is not lost.
func (l *lease) isLoose(now time.Time, limit time.Duration) bool {
	if l.looseSince.IsZero() {
		l.looseSince = now
	}
	return now.Sub(l.looseSince) < limit
}

// leases keeps the leases of the records that run in a worker. The manager's lock guards it.
type leases struct {
	manager  *manager
	provider provider.Provider
}

// togetherWithin: leases that are due within so long of each other are renewed in one call.
const togetherWithin = time.Second

// takeEarly takes the leases of all records of a batch that were delivered before, in one call, and none of their activities begins until
// it has: should one of them end the process, or something else while they wait for each other, the records must not stay locked for as
// long as an invocation may take.
func (l *leases) takeEarly(b *batch) {
	m := l.manager
	var tasks []*task
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.tasks {
		t := &b.tasks[i]
		if !t.lease.ours || !t.doubtful() && !t.place.doubtful {
			continue
		}
		t.item.Record.Hold = provider.NewHold(m.options.Clock(), m.options.LockTimeout)
		t.lease.begin(l.first(t))
		m.arm(t.lease.renewAt)
		tasks = append(tasks, t)
	}
	if len(tasks) > 0 {
		b.leased = make(chan struct{})
		m.beside(b, func(ctx context.Context) { l.takeAll(ctx, b, tasks) })
	}
}

func (l *leases) takeAll(ctx context.Context, b *batch, tasks []*task) {
	defer close(b.leased)
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		items[i] = *t.item
	}
	o := l.manager.options
	limited, stop := context.WithTimeout(ctx, o.LockRenewalBuffer/2)
	defer stop()

	// A record that is lost has a hold that is ended then, and does not begin.
	_, err := l.provider.RenewWorkItemLocks(limited, o.Queue, o.LockTimeout, items...)
	if err != nil && ctx.Err() == nil { // else the batch is over
		o.Logger.WarnContext(ctx, "activity lease failed, retrying", "event", logevent.ActivityLeaseFailed,
			"queue", o.Queue, "records", len(tasks), "error", err)
	}
}

// first is when the lease of an activity that begins is to be taken, or to be renewed for the first time.
func (l *leases) first(t *task) time.Time {
	o := l.manager.options
	if t.lease.ours && t.item.Record.Hold != nil {
		return t.item.Record.LockedUntil().Add(-o.LockRenewalBuffer)
	}
	return t.began.Add(o.LeaseAfter)
}

// check stops an activity whose lock is over.
func (l *leases) check(t *task, now time.Time) {
	h := t.item.Record.Hold
	if t.stop.lost || h == nil || t.item.Record.Held(now) {
		t.lease.looseSince = time.Time{}
		return
	}
	if h.Ended() && !t.lease.ours && t.lease.isLoose(now, l.manager.options.atMostEvery()/2) {
		return
	}
	t.lose(now)
}

// due begins the renewals of a batch that are due, and returns when the next are. They go on until the records are deleted.
func (l *leases) due(b *batch, now time.Time) (next time.Time) {
	var together []*task
	due := false
	for i := range b.tasks {
		t := &b.tasks[i]
		if !t.isLeased() || t.lease.renewing {
			continue
		}
		if t.lease.renewAt.After(now.Add(togetherWithin)) {
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

// isLeased reports whether the worker keeps the lock: of a task that runs, of one that waits for its key, since its record keeps that from others too,
// and of one that is leased, from before it begins until its record is deleted.
func (t *task) isLeased() bool {
	if !t.lease.ours || t.stop.lost {
		return false
	}
	h := t.item.Record.Hold
	return t.phase == phaseRunning || t.place.isBehind() || t.phase != phaseGone && h != nil && !h.Ended()
}

// renew takes or renews the leases of tasks.
func (l *leases) renew(b *batch, tasks []*task, now time.Time) {
	o := l.manager.options
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		if t.item.Record.Hold == nil {
			t.item.Record.Hold = provider.NewHold(now, o.LockTimeout)
		}
		t.lease.renewing = true
		items[i] = l.asking(t)
	}
	l.manager.polls.instead(tasks, now)
	l.manager.beside(b, func(ctx context.Context) {
		// Half the time that is left: a call that hangs is tried again.
		limited, stop := context.WithTimeout(ctx, o.LockRenewalBuffer/2)
		defer stop()
		if renewals, err := l.provider.RenewWorkItemLocks(limited, o.Queue, o.LockTimeout, items...); ctx.Err() == nil { // else the batch is over
			l.renewed(b, tasks, now, renewals, err)
		}
	})
}

// asking is a task's item for a renewal, which answers what its next poll would: whether the activity is cancelled.
func (l *leases) asking(t *task) provider.LockedWorkItem {
	it := *t.item
	it.CancelsFrom = l.manager.polls.from(t)
	return it
}

// renewed takes the answers of a renewal that was asked at a time, each of which is as good as a poll.
func (l *leases) renewed(b *batch, tasks []*task, asked time.Time, renewals []provider.Renewal, err error) {
	m := l.manager
	m.mu.Lock()
	now := m.options.Clock()
	if err == nil {
		m.polls.answered(tasks, asked)
	}
	for i, t := range tasks {
		t.lease.renewing = false
		t.lease.renewAt = l.next(t, now)
		if err != nil {
			m.polls.soon(t, now)
		}
		switch {
		case i >= len(renewals):
		case !renewals[i].Lost:
			if t.phase == phaseRunning {
				m.heed(t, renewals[i].Cancel, now)
			}
		case t.phase == phaseRunning:
			t.lose(now)
		case t.phase == phaseWaiting: // its hold is ended: it does not begin
		default:
			t.phase = phaseGone
		}
	}
	m.mu.Unlock()

	if err != nil {
		m.options.Logger.WarnContext(b.ctx, "activity lease renewal failed, retrying",
			"event", logevent.ActivityLeaseRenewalFailed, "queue", m.options.Queue, "records", len(tasks), "error", err)
	}
	for i := range renewals {
		if renewals[i].Lost {
			tasks[i].log().ErrorContext(b.ctx, "activity lease lost, ignoring its result",
				"event", logevent.ActivityLeaseLost, "queue", m.options.Queue, "record", tasks[i].item.Record.ID)
		}
	}
	m.look()
}

// next is when a lease is renewed again: soon, if its renewal has failed.
func (l *leases) next(t *task, now time.Time) time.Time {
	buffer := l.manager.options.LockRenewalBuffer
	soon := now.Add(buffer / intake.RenewalTries)
	if at := t.item.Record.LockedUntil().Add(-buffer); at.After(soon) {
		return at
	}
	return soon
}
