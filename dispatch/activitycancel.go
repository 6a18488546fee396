package dispatch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// cancelRead is one read of an execution's cancel record, for all of a batch that are to begin.
type cancelRead struct {
	ctx     context.Context //nolint:containedctx // of all for whom it is, whoever comes first
	begun   atomic.Bool
	done    chan struct{}
	cancels provider.Cancels
	err     error
}

func newCancelRead(ctx context.Context) *cancelRead {
	return &cancelRead{ctx: ctx, done: make(chan struct{})}
}

// readsFor is the read that a task shares with those before it: it is begun after the batch was received (R12).
func readsFor(ctx context.Context, before []task, executionID string) *cancelRead {
	for i := range before {
		if before[i].item.ExecutionID == executionID {
			return before[i].reads
		}
	}
	return newCancelRead(ctx)
}

// of reads, or waits for who does.
func (r *cancelRead) of(p provider.Provider, it *provider.LockedWorkItem) (provider.CancelInfo, error) {
	if r.begun.CompareAndSwap(false, true) {
		r.cancels, r.err = p.ReadCancels(r.ctx, it.ExecutionID)
		close(r.done)
	} else {
		<-r.done
	}
	return r.cancels.Of(it.ActivityID), r.err
}

// watched is an execution of which activities are running.
type watched struct {
	executionID string
	instanceID  string
	running     int
	ctx         context.Context //nolint:containedctx // of the shift that came last: what polls are made with
	next        time.Time
	polling     bool
	failing     bool
}

// pollLimit is how long a poll may take.
const pollLimit = 5 * time.Second

func (m *manager) watch(t *task) {
	x := m.executions[t.item.ExecutionID]
	if x == nil {
		x = &watched{executionID: t.item.ExecutionID, instanceID: t.item.InstanceID, next: t.began.Add(m.options.CancelPollInterval)}
		m.executions[x.executionID] = x
	}
	x.running++
	x.ctx = t.shift.ctx
}

func (m *manager) unwatch(t *task) {
	x := m.executions[t.item.ExecutionID]
	if x.running--; x.running == 0 {
		delete(m.executions, x.executionID)
	}
}

// pollDue begins the polls that are due, or are so soon that they need no look of their own, and says when the next are.
func (m *manager) pollDue(now time.Time) (next time.Time) {
	for _, x := range m.executions {
		switch {
		case x.polling:
		case x.next.After(now.Add(m.options.CancelPollInterval / 10)):
			next = earlier(next, x.next)
		default:
			x.polling, x.next = true, now.Add(m.options.CancelPollInterval)
			go m.poll(x.ctx, x)
		}
	}
	return next
}

// poll reads the cancel record of an execution, once for all its activities that are running in this process.
func (m *manager) poll(ctx context.Context, x *watched) {
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), pollLimit)
	defer stop()
	cancels, err := m.options.Provider.ReadCancels(limited, x.executionID)
	m.mu.Lock()
	x.polling = false
	news := err != nil && !x.failing
	x.failing = err != nil
	m.apply(x.executionID, cancels)
	m.mu.Unlock()
	if news {
		m.options.Logger.WarnContext(ctx, "the cancel record of an execution cannot be read, its activities run on meanwhile", "instance", x.instanceID, "execution", x.executionID, "error", err)
	}
	m.look()
}

// heed ends the context of an activity that is cancelled.
func (m *manager) heed(t *task, c provider.CancelInfo, now time.Time) {
	if c.Requested {
		t.deleted = c.Deleted
		if t.signal == nil {
			m.seen = append(m.seen, sighting{t, c.RequestedAt})
		}
		m.signal(t, &perdure.CancelledError{Reason: perdure.CancelReason(c.Reason), Message: c.Message}, now)
	}
}

// apply ends the contexts of the activities that are cancelled.
func (m *manager) apply(executionID string, cancels provider.Cancels) {
	if len(cancels) == 0 {
		return
	}
	now := m.options.Clock()
	for s := range m.shifts {
		for i := range s.tasks {
			t := &s.tasks[i]
			if t.phase != phaseRunning || t.item.ExecutionID != executionID {
				continue
			}
			m.heed(t, cancels.Of(t.item.ActivityID), now)
		}
	}
}
