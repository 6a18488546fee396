package activities

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

// heartbeats is the heartbeat state of a task. It is created on demand, because most activities have no heartbeats. The
// supervisor's lock guards it.
type heartbeats struct {
	// last is the time of the last heartbeat, or of the start.
	last time.Time
	// expire ends the attempt when its heartbeat timeout expires. It is nil if there is no timeout.
	expire context.CancelCauseFunc
	// unwritten has the newest details, from unwrittenAt, if they are not yet in the activity's record.
	unwritten   json.RawMessage
	unwrittenAt time.Time
	// writtenAt is the time of the last write, or of the start. writing is true during a write.
	writtenAt time.Time
	writing   bool
	// writer is a lock with a capacity of 1: older details are not written after newer ones. It is created on demand.
	writer chan struct{}
	// dropped and failing prevent repeated warnings: details were dropped, the last write failed.
	dropped, failing bool
	// lastDetails are the details of an earlier attempt or delivery.
	lastDetails json.RawMessage
	// progressed is true if there were details that differ from lastDetails.
	progressed bool
}

// heartbeatState returns the heartbeat state of a task, which it creates if there is none.
func (t *task) heartbeatState() *heartbeats {
	if t.heartbeats == nil {
		t.heartbeats = &heartbeats{last: t.startedAt, writtenAt: t.startedAt}
	}
	return t.heartbeats
}

// setLastDetails sets the details of an earlier attempt or delivery before the task starts.
func (t *task) setLastDetails(details json.RawMessage) {
	if len(details) > 0 {
		t.heartbeats = &heartbeats{lastDetails: details}
	}
}

// start records the start of the attempt.
func (h *heartbeats) start(now time.Time) {
	if h != nil {
		h.last, h.writtenAt = now, now
	}
}

// record records a heartbeat.
func (h *heartbeats) record(now time.Time, details json.RawMessage) {
	h.last = now
	if len(details) == 0 {
		return
	}
	if h.writer == nil {
		h.writer = make(chan struct{}, 1)
	}
	h.unwritten, h.unwrittenAt = details, now
	h.progressed = h.progressed || !bytes.Equal(details, h.lastDetails)
}

// take returns the unwritten details for a write.
func (h *heartbeats) take(activityID int64, now time.Time) provider.ActivityRecord {
	r := provider.ActivityRecord{ActivityID: activityID, Details: h.unwritten, LastHeartbeatAt: h.unwrittenAt}
	h.unwritten = nil
	h.writtenAt = now
	return r
}

// written records the result of a write, and reports whether this is the first failure. The details of a failed write
// are written again, unless there are newer ones.
func (h *heartbeats) written(r *provider.ActivityRecord, err error) (firstFailure bool) {
	firstFailure = err != nil && !h.failing
	if h.failing = err != nil; h.failing && h.unwritten == nil {
		h.unwritten, h.unwrittenAt = r.Details, r.LastHeartbeatAt
	}
	return firstFailure
}

// drop records that details were dropped, and reports whether they are the first ones.
func (h *heartbeats) drop() (first bool) {
	first = !h.dropped
	h.dropped = true
	return first
}

// LastDetails implements activityctx.Heartbeats.
func (h activityHandle) LastDetails() json.RawMessage {
	s := h.task.batch.worker.supervisor
	s.Lock()
	defer s.Unlock()
	if h.task.heartbeats == nil {
		return nil
	}
	return h.task.heartbeats.lastDetails
}

// Record implements activityctx.Heartbeats. It ignores heartbeats of an activity that has ended or lost its lock.
func (h activityHandle) Record(details json.RawMessage, err error) {
	s, t := h.task.batch.worker.supervisor, h.task
	s.Lock()
	if t.phase != phaseRunning || t.stop.lockLost {
		s.Unlock()
		return
	}
	state := t.heartbeatState()
	state.record(s.options.Clock(), details)
	if len(details) > 0 {
		s.WakeAt(state.writtenAt.Add(s.options.writeInterval()))
	}
	dropped := err != nil && state.drop()
	s.Unlock()

	if dropped {
		t.log().WarnContext(t.batch.ctx, "heartbeat details dropped, keeping the previous ones",
			"event", logevent.HeartbeatDetailsDropped, "error", err)
	}
}

// heartbeatWriter writes heartbeat details to the records of activities, and ends attempts whose heartbeat timeout
// expires. The supervisor's lock guards it.
type heartbeatWriter struct {
	supervisor *supervisor
	payloads   *payloadEncoder
}

// expect calls expire when the heartbeat timeout of a task expires.
func (w *heartbeatWriter) expect(t *task, expire context.CancelCauseFunc) {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	h := t.heartbeatState()
	h.expire = expire
	w.supervisor.WakeAt(h.last.Add(time.Duration(t.item.HeartbeatMs) * time.Millisecond))
}

// writeDue writes the details of a running task and ends its attempt, if that is due. It returns when it must be called
// again.
func (w *heartbeatWriter) writeDue(t *task, now time.Time) (next time.Time) {
	h := t.heartbeats
	if h == nil {
		return next
	}
	if h.unwritten != nil && !h.writing && t.mayWrite(now) {
		if next = h.writtenAt.Add(w.supervisor.options.writeInterval()); !next.After(now) {
			next, h.writing = time.Time{}, true
			w.supervisor.inBackground(t.batch, func(ctx context.Context) { w.writeRunning(ctx, t) })
		}
	}
	if h.expire == nil || t.stop.reason != nil {
		return next
	}

	limit := time.Duration(t.item.HeartbeatMs) * time.Millisecond
	if due := h.last.Add(limit); now.Before(due) {
		return intake.Earlier(next, due)
	}
	h.expire(&perdure.TimeoutError{
		Message: fmt.Sprintf("activity %q: heartbeat timeout of %v expired", t.item.Name, limit),
	})
	h.expire = nil
	return next
}

// mayWrite reports whether the worker may write the activity's record. It may not after the lock has ended, because
// another worker may write it, and not for a deleted instance, because the write would remain. The hold of a polled
// record also ends when its poller stops; heartbeats are still written then.
func (t *task) mayWrite(now time.Time) bool {
	h := t.item.Record.Hold
	stopping := t.stop.reason != nil && t.stop.reason.Reason == perdure.ReasonShutdown && h != nil && h.Ended()
	return !t.stop.lockLost && !t.stop.deleted && (stopping || t.item.Record.Held(now))
}

// writeRunning writes details while the task runs.
func (w *heartbeatWriter) writeRunning(ctx context.Context, t *task) {
	w.write(ctx, t, phaseRunning)
	w.supervisor.Lock()
	t.heartbeats.writing = false
	w.supervisor.Unlock()
	w.supervisor.Check()
}

// flush writes the details of an attempt that has ended, for the next attempt or delivery.
func (w *heartbeatWriter) flush(ctx context.Context, t *task) {
	w.write(context.WithoutCancel(ctx), t, phaseEnded)
}

// write writes the newest details if the task is in a phase and holds its lock.
func (w *heartbeatWriter) write(ctx context.Context, t *task, in phase) {
	s := w.supervisor
	var writer chan struct{}
	s.Lock()
	if t.heartbeats != nil {
		writer = t.heartbeats.writer
	}
	s.Unlock()
	if writer == nil {
		return
	}
	select {
	case writer <- struct{}{}:
		defer func() { <-writer }()
	case <-time.After(writeTimeout):
		return // the other write takes as long
	}

	r, due := w.take(t, in)
	if !due {
		return
	}
	err := w.store(ctx, t, r)
	s.Lock()
	firstFailure := t.heartbeats.written(&r, err)
	s.Unlock()
	if err == nil && w.hasProgressed(t) {
		t.batch.worker.admission.crashes.unmarkOthers(ctx, t)
	}
	if firstFailure && ctx.Err() == nil {
		t.log().WarnContext(ctx, "heartbeat details write failed, retrying", "event", logevent.HeartbeatWriteFailed,
			"error", err)
	}
}

// store encodes and writes details until ctx ends.
func (w *heartbeatWriter) store(ctx context.Context, t *task, r provider.ActivityRecord) (err error) {
	ctx, stop := context.WithTimeout(ctx, writeTimeout)
	defer stop()
	if r.Details, err = w.payloads.encodeDetails(ctx, t, r.Details); err != nil {
		return err
	}
	return w.supervisor.recorder.write(ctx, t, r)
}

// take returns the details of a task in a phase that are to be written.
func (w *heartbeatWriter) take(t *task, in phase) (r provider.ActivityRecord, due bool) {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	now := w.supervisor.options.Clock()
	if t.heartbeats == nil || t.heartbeats.unwritten == nil || t.phase != in || !t.mayWrite(now) {
		return r, false
	}
	return t.heartbeats.take(t.item.ActivityID, now), true
}

// hasProgressed reports whether this delivery had new heartbeat details.
func (w *heartbeatWriter) hasProgressed(t *task) bool {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	return t.heartbeats != nil && t.heartbeats.progressed
}
