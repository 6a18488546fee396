package dispatch

import (
	"bytes"
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An activity may take longer than an invocation of its function, and go on from its heartbeat in the next. One that leaves no new
// heartbeat each time begins anew each time, and would for ever: nobody would see its end.

// runOutsOfAnAttempt is how often in a row an attempt may run into the end of its invocation without a new heartbeat.
const runOutsOfAnAttempt = 3

// ranOut reports whether an activity ran into the end of its invocation, of which it had its fair share: one that came late, since
// it had to wait for others, may well end in another.
func (t *task) ranOut() bool {
	return t.signal != nil && t.signal.Reason == perdure.ReasonDeadline && !t.shift.tellAt.IsZero() &&
		t.began.Sub(t.shift.since) <= t.shift.tellAt.Sub(t.began)
}

// progressed reports whether this delivery has left other details than it began with.
func (m *manager) progressed(t *task) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.pulse.progressed
}

// isNews reports whether details are others than those that an earlier delivery has left.
func (p *pulse) isNews(details []byte) bool { return !bytes.Equal(details, p.left) }

// forget takes the marks of earlier deliveries away, once, where this one has left new details: whatever they died of, it did not keep the
// activity from getting on, as a killer does. Its own mark stays, so that one which kills once it has told of something goes on alone.
func (m *manager) forget(ctx context.Context, t *task) {
	if !t.marked || t.died == 0 || t.forgot || !m.progressed(t) {
		return
	}
	a := t.attemptOf()
	a.Progressed = true
	if err := unmark(ctx, m.options, a); err != nil {
		m.options.Logger.WarnContext(ctx, "the marks of an activity that makes progress stay", "activity", t.item.Name, "instance", t.item.InstanceID,
			"activityId", t.item.ActivityID, "error", err)
		return
	}
	t.forgot = true
}

// countRunOut notes how often in a row an attempt ran into the end of its invocation without progress, and fails it where that is
// enough. It is for a task that goes back to its queue.
func (m *manager) countRunOut(ctx context.Context, t *task, returned bool) ending {
	it, n := &t.item, 0
	if !t.ranOut() || !t.mayWrite(m.options.Clock()) {
		return ending{back: true}
	}
	if !m.progressed(t) {
		n = t.runOuts + 1
	}
	if n >= runOutsOfAnAttempt {
		why := fmt.Sprintf("activity %q: it ran into the end of its invocation %d times in a row, each time without a new heartbeat: it needs a longer function timeout, smaller steps, "+
			"or heartbeats to go on from", it.Name, n)
		m.options.Logger.ErrorContext(ctx, "activity makes no progress: its attempt has failed", "activity", it.Name, "instance", it.InstanceID,
			"activityId", it.ActivityID, "attempt", it.Attempt, "runOuts", n)
		o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: timedOut(why)}
		if it.WaitCancel && !returned {
			o.Ended = history.EndGivenUp
		}
		return ending{outcome: o}
	}
	if n == t.runOuts {
		return ending{back: true}
	}
	if err := m.put(ctx, t, provider.ActivityRecord{ActivityID: it.ActivityID, RunOutOf: it.Attempt, RunOuts: n}); err != nil {
		m.options.Logger.WarnContext(ctx, "it could not be written that an activity ran into the end of its invocation", "activity", it.Name,
			"instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
	}
	return ending{back: true}
}
