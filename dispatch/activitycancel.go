package dispatch

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// watched is an execution of which activities are running.
type watched struct {
	executionID string
	instanceID  string
	running     int
	from        int64           // from which segment on one of them does not know the cancel record
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
		x = &watched{executionID: t.item.ExecutionID, instanceID: t.item.InstanceID, from: t.heard, next: t.began.Add(m.options.CancelPollInterval)}
		m.executions[x.executionID] = x
	}
	x.running++
	x.from = min(x.from, t.heard)
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
			go m.poll(x.ctx, x, x.from)
		}
	}
	return next
}

// poll reads on in the cancel record of an execution, once for all its activities that are running in this process.
func (m *manager) poll(ctx context.Context, x *watched, from int64) {
	m.reporter.atWork(ctx)
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), pollLimit)
	defer stop()
	cancels, next, err := m.options.Provider.ReadCancels(limited, x.executionID, from)
	m.mu.Lock()
	if err == nil && x.from == from { // else one has begun meanwhile that knows less
		x.from = next
	}
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
			t.unheard = c.Ended
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
