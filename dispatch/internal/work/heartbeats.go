package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// heartbeats is what the heartbeats of a task come to. Most activities have none, and then it is not made. The manager's lock guards it.
type heartbeats struct {
	// last is the time of the last heartbeat, or of the beginning.
	last time.Time
	// expire ends the attempt when it has gone without a heartbeat for too long; nil: it may.
	expire context.CancelCauseFunc
	// unwritten are the newest details, of the time at, if they are not in the activity's record. They are written at most once
	// in Options.atMostEvery.
	unwritten json.RawMessage
	at        time.Time
	// savedAt is when they were written last, or the beginning; saving: they are being written.
	savedAt time.Time
	saving  bool
	// writing is held while details are written, so that no older ones come after newer ones. It is made for the first.
	writing chan struct{}
	// muted and failing keep a warning from being logged twice: details dropped, last write failed.
	muted, failing bool
	// left are the details that an earlier attempt or delivery has left.
	left json.RawMessage
	// progressed: other details were sent than those.
	progressed bool
}

// beatsOf are the heartbeats of a task, which are made where there are none.
func beatsOf(t *task) *heartbeats {
	if t.beats == nil {
		t.beats = &heartbeats{last: t.began, savedAt: t.began}
	}
	return t.beats
}

// leftDetails sets the details that an earlier attempt or delivery has left to a task that has not begun.
func leftDetails(t *task, details json.RawMessage) {
	if len(details) > 0 {
		t.beats = &heartbeats{left: details}
	}
}

// begin is the beginning of an attempt.
func (h *heartbeats) begin(now time.Time) {
	if h != nil {
		h.last, h.savedAt = now, now
	}
}

// beat takes a heartbeat.
func (h *heartbeats) beat(now time.Time, details json.RawMessage) {
	h.last = now
	if len(details) == 0 {
		return
	}
	if h.writing == nil {
		h.writing = make(chan struct{}, 1)
	}
	h.unwritten, h.at = details, now
	h.progressed = h.progressed || !bytes.Equal(details, h.left)
}

// take takes the details that are to be written.
func (h *heartbeats) take(activityID int64, now time.Time) provider.ActivityRecord {
	r := provider.ActivityRecord{ActivityID: activityID, Details: h.unwritten, LastHeartbeatAt: h.at}
	h.unwritten = nil
	h.savedAt = now
	return r
}

// written notes how a write ended, and reports whether it is the first that failed. Details that could not be written stay, unless there
// are newer ones.
func (h *heartbeats) written(r *provider.ActivityRecord, err error) (firstFailure bool) {
	firstFailure = err != nil && !h.failing
	if h.failing = err != nil; h.failing && h.unwritten == nil {
		h.unwritten, h.at = r.Details, r.LastHeartbeatAt
	}
	return firstFailure
}

// mute reports whether details were dropped for the first time.
func (h *heartbeats) mute() (first bool) {
	first = !h.muted
	h.muted = true
	return first
}

// LastDetails implements activityctx.Heartbeats.
func (a atWork) LastDetails() json.RawMessage {
	m := a.task.batch.worker.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.task.beats == nil {
		return nil
	}
	return a.task.beats.left
}

// Record implements activityctx.Heartbeats. It ignores heartbeats of an activity that has ended or was abandoned.
func (a atWork) Record(details json.RawMessage, err error) {
	m, t := a.task.batch.worker.manager, a.task
	m.mu.Lock()
	if t.phase != phaseRunning || t.stop.lost {
		m.mu.Unlock()
		return
	}
	beatsOf(t).beat(m.options.Clock(), details)
	if len(details) > 0 {
		m.arm(t.beats.savedAt.Add(m.options.atMostEvery()))
	}
	dropped := err != nil && t.beats.mute()
	m.mu.Unlock()

	if dropped {
		t.log().WarnContext(t.batch.ctx, "heartbeat details dropped, keeping the previous ones",
			"event", logevent.HeartbeatDetailsDropped, "error", err)
	}
}

// beatWriter writes the details of heartbeats to the records of activities. The manager's lock guards it.
type beatWriter struct {
	manager *manager
	base    *intake.Base
}

// expect has expire called when a task goes without a heartbeat for longer than it may.
func (w *beatWriter) expect(t *task, expire context.CancelCauseFunc) {
	w.manager.mu.Lock()
	defer w.manager.mu.Unlock()
	beatsOf(t).expire = expire
	w.manager.arm(t.beats.last.Add(time.Duration(t.item.HeartbeatMs) * time.Millisecond))
}

// due has the details of a running task's heartbeats written, ends an attempt that has gone without a heartbeat, and returns when that
// is to be looked at again.
func (w *beatWriter) due(t *task, now time.Time) (next time.Time) {
	h := t.beats
	if h == nil {
		return next
	}
	if h.unwritten != nil && !h.saving && t.mayWrite(now) {
		if next = h.savedAt.Add(w.manager.options.atMostEvery()); !next.After(now) {
			next, h.saving = time.Time{}, true
			w.manager.beside(t.batch, func(ctx context.Context) { w.save(ctx, t) })
		}
	}
	if h.expire == nil || t.stop.why != nil {
		return next
	}

	limit := time.Duration(t.item.HeartbeatMs) * time.Millisecond
	if due := h.last.Add(limit); now.Before(due) {
		return intake.Earlier(next, due)
	}
	h.expire(&perdure.TimeoutError{Message: fmt.Sprintf("activity %q: heartbeat timeout of %v expired", t.item.Name,
		limit)})
	h.expire = nil
	return next
}

// mayWrite reports whether a task's record is still this worker's to write. Once the lock is over another worker may have the activity,
// and what that one leaves counts. A poller that is being stopped gives back what is left, and ends the contexts after: heartbeats until
// then are still to be written. Of a deleted instance nothing is written, since it would stay for ever.
func (t *task) mayWrite(now time.Time) bool {
	h := t.item.Record.Hold
	givenBack := t.stop.why != nil && t.stop.why.Reason == perdure.ReasonShutdown && h != nil && h.Ended()
	return !t.stop.lost && !t.stop.deleted && (givenBack || t.item.Record.Held(now))
}

// save writes details while the task runs.
func (w *beatWriter) save(ctx context.Context, t *task) {
	w.write(ctx, t, phaseRunning)
	w.manager.mu.Lock()
	t.beats.saving = false
	w.manager.mu.Unlock()
	w.manager.look()
}

// flush writes the details of an attempt that has ended and is made again: the next must find them.
func (w *beatWriter) flush(ctx context.Context, t *task) {
	w.write(context.WithoutCancel(ctx), t, phaseEnded)
}

// write writes the newest details, if the task is still in that phase and its lock is not over.
func (w *beatWriter) write(ctx context.Context, t *task, in phase) {
	m := w.manager
	var writing chan struct{}
	m.mu.Lock()
	if t.beats != nil {
		writing = t.beats.writing
	}
	m.mu.Unlock()
	if writing == nil {
		return
	}
	select {
	case writing <- struct{}{}:
		defer func() { <-writing }()
	case <-time.After(recordLimit):
		return // the other write is as late
	}

	r, due := w.take(t, in)
	if !due {
		return
	}
	err := w.store(ctx, t, r)
	m.mu.Lock()
	firstFailure := t.beats.written(&r, err)
	m.mu.Unlock()
	if err == nil {
		w.forgetMarks(ctx, t)
	}
	if firstFailure && ctx.Err() == nil {
		t.log().WarnContext(ctx, "heartbeat details write failed, retrying", "event", logevent.HeartbeatWriteFailed,
			"error", err)
	}
}

// store seals details and writes them, while ctx has not ended.
func (w *beatWriter) store(ctx context.Context, t *task, r provider.ActivityRecord) (err error) {
	ctx, stop := context.WithTimeout(ctx, recordLimit)
	defer stop()
	if r.Details, err = sealDetails(ctx, t, r.Details); err != nil {
		return err
	}
	return w.manager.records.within(ctx, t, r)
}

// take takes the details that are to be written.
func (w *beatWriter) take(t *task, in phase) (r provider.ActivityRecord, due bool) {
	w.manager.mu.Lock()
	defer w.manager.mu.Unlock()
	now := w.manager.options.Clock()
	if t.beats == nil || t.beats.unwritten == nil || t.phase != in || !t.mayWrite(now) {
		return r, false
	}
	return t.beats.take(t.item.ActivityID, now), true
}

// hasProgressed reports whether this delivery has left other details than it began with.
func (w *beatWriter) hasProgressed(t *task) bool {
	w.manager.mu.Lock()
	defer w.manager.mu.Unlock()
	return t.beats != nil && t.beats.progressed
}
