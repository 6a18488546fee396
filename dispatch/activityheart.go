package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// pulse is what the heartbeats of a task come to. The manager's lock is on it, but for left.
type pulse struct {
	// last is the time of the last heartbeat, or of the beginning.
	last time.Time
	// expire ends the attempt when it has gone without one for too long; nil: it may.
	expire context.CancelCauseFunc
	// unwritten are the newest details, of the time at, if they are not in the activity's record. They are written at most once
	// in CancelPollInterval.
	unwritten json.RawMessage
	at        time.Time
	// savedAt is when they were written last, or the beginning; saving says that they are being written.
	savedAt time.Time
	saving  bool
	// pen is held by who writes, so that no older details come after newer ones. It is made for the first.
	pen chan struct{}
	// muted: it was told that details cannot be kept. failing: so it was that they could not be written last.
	muted, failing bool
	// left are the details that an earlier attempt or delivery has left.
	left json.RawMessage
	// progressed: it has told of others.
	progressed bool
}

// heart is perdure.Heartbeats for one activity.
type heart struct {
	manager *manager
	task    *task
}

// LastDetails implements perdure.Heartbeats.
func (h heart) LastDetails() json.RawMessage { return h.task.pulse.left }

// Beat implements perdure.Heartbeats. What has ended, or was given up, has no heartbeat any more.
func (h heart) Beat(details json.RawMessage, err error) {
	m, t := h.manager, h.task
	m.mu.Lock()
	p := &t.pulse
	if t.phase != phaseRunning || t.lost {
		m.mu.Unlock()
		return
	}
	p.last = m.options.Clock()
	complain := err != nil && !p.muted
	p.muted = p.muted || complain
	if len(details) > 0 {
		p.progressed = p.progressed || p.isNews(details)
		if p.pen == nil {
			p.pen = make(chan struct{}, 1)
		}
		p.unwritten, p.at = details, p.last
		m.arm(p.savedAt.Add(m.options.CancelPollInterval))
	}
	m.mu.Unlock()
	if complain {
		m.options.Logger.WarnContext(t.shift.ctx, "the details of a heartbeat are dropped: those before stay", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
}

// begin is the beginning of an attempt.
func (p *pulse) begin(now time.Time) { p.last, p.savedAt = now, now }

// heartDue looks at a running task's heartbeats: it has their details written, ends what has gone without, and says when that is to
// be looked at again.
func (m *manager) heartDue(t *task, now time.Time) (next time.Time) {
	p := &t.pulse
	if p.unwritten != nil && !p.saving && t.mayWrite(now) {
		if next = p.savedAt.Add(m.options.CancelPollInterval); !next.After(now) {
			next, p.saving = time.Time{}, true
			go m.save(t.shift.ctx, t)
		}
	}
	if p.expire == nil || t.signal != nil {
		return next
	}
	limit := time.Duration(t.item.HeartbeatMs) * time.Millisecond
	if due := p.last.Add(limit); now.Before(due) {
		return earlier(next, due)
	}
	p.expire(&perdure.TimeoutError{Message: fmt.Sprintf("activity %q: its heartbeat timeout of %v is over", t.item.Name, limit)})
	p.expire = nil
	return next
}

// mayWrite: once the lock is over, another worker may have the activity, and what it leaves counts. A poller that is being stopped
// gives back what is left, and ends the contexts after: what an activity has told until then is still to be written. Of a deleted
// instance nothing is: it would stay for ever.
func (t *task) mayWrite(now time.Time) bool {
	h := t.item.Record.Hold
	givenBack := t.signal != nil && t.signal.Reason == perdure.ReasonShutdown && h != nil && h.Ended()
	return !t.lost && !t.deleted && (givenBack || t.item.Record.Held(now))
}

// expectHeartbeats has expire called when a task goes without a heartbeat for longer than it may.
func (m *manager) expectHeartbeats(t *task, expire context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.pulse.expire = expire
	m.arm(t.pulse.last.Add(time.Duration(t.item.HeartbeatMs) * time.Millisecond))
}

// save writes the details that are not written while the task runs.
func (m *manager) save(ctx context.Context, t *task) {
	m.write(ctx, t, phaseRunning)
	m.mu.Lock()
	t.pulse.saving = false
	m.mu.Unlock()
	m.look()
}

// flush writes those of an attempt that has ended and is made again: the next must find them.
func (m *manager) flush(ctx context.Context, t *task) { m.write(ctx, t, phaseEnded) }

// write writes the newest details, if the task is still in that phase and its lock is not over. What could not be written stays.
func (m *manager) write(ctx context.Context, t *task, in phase) {
	m.mu.Lock()
	pen := t.pulse.pen
	m.mu.Unlock()
	if pen == nil {
		return
	}
	select {
	case pen <- struct{}{}:
		defer func() { <-pen }()
	case <-time.After(recordLimit):
		return // whoever has it is as late
	}
	r, due := m.unwritten(t, in)
	if !due {
		return
	}
	err := m.put(ctx, t, r)
	m.mu.Lock()
	p := &t.pulse
	news := err != nil && !p.failing
	if p.failing = err != nil; p.failing && p.unwritten == nil {
		p.unwritten, p.at = r.Details, r.BeatenAt
	}
	m.mu.Unlock()
	if err == nil {
		m.forget(ctx, t)
	}
	if news {
		m.options.Logger.WarnContext(ctx, "the details of a heartbeat could not be written, it is tried again", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
}

// unwritten takes the details that are to be written.
func (m *manager) unwritten(t *task, in phase) (r provider.ActivityRecord, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, now := &t.pulse, m.options.Clock()
	if p.unwritten == nil || t.phase != in || !t.mayWrite(now) {
		return r, false
	}
	r = provider.ActivityRecord{ActivityID: t.item.ActivityID, Details: p.unwritten, BeatenAt: p.at}
	p.unwritten, p.savedAt = nil, now
	return r, true
}

// remember reads the details that an earlier attempt or delivery may have left. Most are the first, and it costs them nothing.
func (w *Worker) remember(ctx context.Context, t *task) (ok bool) {
	it := &t.item
	if it.Attempt <= 1 && it.Record.ReceiveCount <= 1 && it.NotBefore == nil && !it.Again {
		return true
	}
	r, err := w.provider.ReadActivityRecord(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		w.options.Logger.ErrorContext(ctx, "it cannot be read what an earlier attempt of an activity has left, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return false
	}
	t.pulse.left = r.Details
	w.manager.own(ctx, t, &r)
	if r.RunOutOf == it.Attempt {
		t.runOuts = r.RunOuts
	}
	return true
}
