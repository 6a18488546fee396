package dispatch

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// A lease is a lock that is shorter than what the queue gave: the visibility of a work queue is as long as an invocation may
// take, and so long nobody would notice that a worker has died. What takes less than a few seconds needs none.

// togetherWithin: leases that are due within so long of each other are renewed in one call.
const togetherWithin = time.Second

// leaseEarly takes the leases of all records of a shift that were delivered before, in one call, and none of their activities begins
// until it has: should one of them end the process, or while they wait for each other something else, the records must not stay locked
// for as long as an invocation may take.
func (m *manager) leaseEarly(ctx context.Context, s *shift) {
	var tasks []*task
	m.mu.Lock()
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.pushed || !t.doubtful() {
			continue
		}
		t.item.Record.Hold = provider.NewHold(m.options.Clock(), m.options.LockTimeout)
		t.renewAt = m.firstRenewal(t)
		m.arm(t.renewAt)
		tasks = append(tasks, t)
	}
	m.mu.Unlock()
	if len(tasks) == 0 {
		return
	}
	s.leased = make(chan struct{})
	go m.leaseAll(ctx, s, tasks)
}

func (m *manager) leaseAll(ctx context.Context, s *shift, tasks []*task) {
	defer close(s.leased)
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		items[i] = t.item
	}
	limited, stop := context.WithTimeout(ctx, m.options.LockRenewalBuffer/2)
	defer stop()
	// What is lost has a hold that is ended then, and does not begin.
	_, err := m.options.Provider.RenewWorkItemLocks(limited, m.options.Queue, m.options.LockTimeout, items...)
	if err != nil {
		m.options.Logger.WarnContext(ctx, "the leases of activities could not be taken before they run, it is tried again", "queue", m.options.Queue, "records", len(tasks), "error", err)
	}
}

// firstRenewal is when the lease of an activity that begins is to be taken, or to be renewed for the first time.
func (m *manager) firstRenewal(t *task) time.Time {
	if t.pushed && t.item.Record.Hold != nil {
		return t.item.Record.LockedUntil().Add(-m.options.LockRenewalBuffer)
	}
	return t.began.Add(m.options.LockAfter)
}

// checkLock ends the context of an activity whose lock is over.
func (m *manager) checkLock(t *task, now time.Time) {
	h := t.item.Record.Hold
	if t.lost || h == nil || t.item.Record.Held(now) {
		t.looseSince = time.Time{}
		return
	}
	if h.Ended() && !t.pushed {
		// A poller that is being stopped gives back what is left, and ends the context after: then it is not lost.
		if t.looseSince.IsZero() {
			t.looseSince = now
		}
		if now.Sub(t.looseSince) < m.options.CancelPollInterval/2 {
			return
		}
	}
	m.lose(t, now)
}

func (m *manager) lose(t *task, now time.Time) {
	t.lost = true
	m.signal(t, &perdure.CancelledError{Reason: perdure.ReasonLockLost, Message: "another worker may have the activity now"}, now)
}

// leaseDue begins the renewals of a shift that are due, and says when the next are. They go on until the records are deleted.
func (m *manager) leaseDue(s *shift, now time.Time) (next time.Time) {
	var together []*task
	due := false
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.leased() || t.renewing {
			continue
		}
		if t.renewAt.After(now.Add(togetherWithin)) {
			next = earlier(next, t.renewAt)
			continue
		}
		together = append(together, t)
		due = due || !t.renewAt.After(now)
	}
	if due {
		m.renew(s, together, now)
		return next
	}
	for _, t := range together {
		next = earlier(next, t.renewAt)
	}
	return next
}

// leased reports whether the lock is kept: of what is running, and of what was leased, from before it begins until its record is
// deleted.
func (t *task) leased() bool {
	h := t.item.Record.Hold
	return t.pushed && !t.lost && (t.phase == phaseRunning || t.phase != phaseGone && h != nil && !h.Ended())
}

// renew takes or renews the leases of tasks.
func (m *manager) renew(s *shift, tasks []*task, now time.Time) {
	items := make([]provider.LockedWorkItem, len(tasks))
	for i, t := range tasks {
		if t.item.Record.Hold == nil {
			t.item.Record.Hold = provider.NewHold(now, m.options.LockTimeout)
		}
		t.renewing = true
		m.postpone(t, now.Add(m.options.CancelPollInterval))
		items[i] = t.item
		if x := m.executions[t.item.ExecutionID]; x != nil {
			items[i].CancelsFrom = x.from
		}
	}
	go func() {
		// Half the time that is left: one that hangs is tried again.
		ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), m.options.LockRenewalBuffer/2)
		defer stop()
		renewals, err := m.options.Provider.RenewWorkItemLocks(ctx, m.options.Queue, m.options.LockTimeout, items...)
		m.renewed(s, tasks, renewals, err)
	}()
}

// postpone puts the next poll of a task's execution off, or moves it up: a renewal asks for the same.
func (m *manager) postpone(t *task, to time.Time) {
	if x := m.executions[t.item.ExecutionID]; x != nil {
		x.next = to
	}
}

// renewed takes what came of a renewal, which is as good as a poll.
func (m *manager) renewed(s *shift, tasks []*task, renewals []provider.Renewal, err error) {
	m.mu.Lock()
	now := m.options.Clock()
	soon := now.Add(m.options.LockRenewalBuffer / renewalTries)
	for i, t := range tasks {
		t.renewing = false
		if t.renewAt = t.item.Record.LockedUntil().Add(-m.options.LockRenewalBuffer); t.renewAt.Before(soon) {
			t.renewAt = soon // it failed
		}
		if err != nil {
			m.postpone(t, now)
		}
		switch {
		case i >= len(renewals):
		case renewals[i].Lost && t.phase == phaseRunning:
			m.lose(t, now)
		case renewals[i].Lost && t.phase == phaseWaiting: // its hold is ended: it does not begin
		case renewals[i].Lost:
			t.phase = phaseGone
		case t.phase == phaseRunning:
			m.heed(t, renewals[i].Cancel, now)
		}
	}
	m.mu.Unlock()
	if err != nil {
		m.options.Logger.WarnContext(s.ctx, "leases could not be renewed, it is tried again", "queue", m.options.Queue, "records", len(tasks), "error", err)
	}
	for i := range renewals {
		if renewals[i].Lost {
			it := &tasks[i].item
			m.options.Logger.ErrorContext(s.ctx, "the lease of an activity is lost: what comes of it is not sent, another worker may have it", "activity", it.Name,
				"instance", it.InstanceID, "activityId", it.ActivityID, "queue", m.options.Queue, "record", it.Record.ID)
		}
	}
	m.look()
}
