package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/activitypayload"
	"github.com/perdure/perdure/dispatch/internal/heartbeat"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// heartbeatState returns the heartbeat state of a task, which it creates if there is none.
func (t *task) heartbeatState() *heartbeat.State {
	if t.heartbeats == nil {
		t.heartbeats = heartbeat.New(t.startedAt)
	}
	return t.heartbeats
}

// setLastDetails sets the details of an earlier attempt or delivery before the task starts.
func (t *task) setLastDetails(details json.RawMessage) {
	if len(details) > 0 {
		t.heartbeats = heartbeat.NewWithDetails(details)
	}
}

// LastDetails implements activityctx.Heartbeats.
func (h activityHandle) LastDetails() json.RawMessage {
	s := h.task.batch.worker.supervisor
	s.Lock()
	defer s.Unlock()
	return h.task.heartbeats.LastDetails()
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
	state.Record(s.options.Clock(), details)
	if len(details) > 0 {
		s.WakeAt(state.NextWrite(s.options.writeInterval()))
	}
	dropped := err != nil && state.Drop()
	s.Unlock()

	if dropped {
		t.Log().WarnContext(t.batch.ctx, "heartbeat details dropped, using the previous details",
			"event", logevent.HeartbeatDetailsDropped, "error", err)
	}
}

// heartbeatWriter writes heartbeat details to the records of activities, and ends attempts whose heartbeat timeout
// expires. The supervisor's lock guards it.
type heartbeatWriter struct {
	supervisor *supervisor
	payloads   *activitypayload.Encoder
	crashes    *isolation.Guard
}

func (w *heartbeatWriter) expect(t *task, expire context.CancelCauseFunc) {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	h := t.heartbeatState()
	h.Expect(expire)
	w.supervisor.WakeAt(h.Last().Add(heartbeatTimeout(t.item)))
}

// writeDue writes the details of a running task and ends its attempt, if either is due. It returns the time of the next
// call.
func (w *heartbeatWriter) writeDue(t *task, now time.Time) (next time.Time) {
	h := t.heartbeats
	if h == nil {
		return next
	}
	if h.NeedsWrite() && t.mayWrite(now) {
		if next = h.NextWrite(w.supervisor.options.writeInterval()); !next.After(now) {
			next = time.Time{}
			h.StartWrite()
			w.supervisor.inBackground(t.batch, func(ctx context.Context) { w.writeRunning(ctx, t) })
		}
	}
	if t.stop.reason != nil {
		return next
	}
	return intake.Earlier(next, h.ExpireIfDue(t.item.Name, heartbeatTimeout(t.item), now))
}

func heartbeatTimeout(it *provider.LockedWorkItem) time.Duration {
	return time.Duration(it.HeartbeatMs) * time.Millisecond
}

// mayWrite reports whether the worker may write the activity's record. After the lock has ended, another worker may
// write the record. After the instance is deleted, nothing would delete the record. The hold of a polled record ends
// when its poller stops, but heartbeats are still written.
func (t *task) mayWrite(now time.Time) bool {
	h := t.item.Record.Hold
	stopping := t.stop.reason != nil && t.stop.reason.Reason == perdure.ReasonShutdown && h != nil && h.Ended()
	return !t.stop.lockLost && !t.stop.deleted && (stopping || t.item.Record.Held(now))
}

// writeRunning writes details while the task runs.
func (w *heartbeatWriter) writeRunning(ctx context.Context, t *task) {
	w.write(ctx, t, phaseRunning)
	w.supervisor.Lock()
	t.heartbeats.EndWrite()
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
	s.Lock()
	writer := t.heartbeats.Writer()
	s.Unlock()
	if writer == nil {
		return
	}
	select {
	case writer <- struct{}{}:
		defer func() { <-writer }()
	case <-time.After(intake.WriteTimeout):
		return // another write has not ended within its timeout
	}

	r, due := w.take(t, in)
	if !due {
		return
	}
	err := w.store(ctx, t, r)
	s.Lock()
	firstFailure := t.heartbeats.Written(&r, err)
	s.Unlock()
	if err == nil && w.hasProgressed(t) {
		w.crashes.UnmarkOthers(ctx, t)
	}
	if firstFailure && ctx.Err() == nil {
		t.Log().WarnContext(ctx, "heartbeat details write failed, retrying", "event", logevent.HeartbeatWriteFailed,
			"error", err)
	}
}

func (w *heartbeatWriter) store(ctx context.Context, t *task, r provider.ActivityRecord) (err error) {
	ctx, stop := context.WithTimeout(ctx, intake.WriteTimeout)
	defer stop()
	if r.Details, err = w.payloads.EncodeDetails(ctx, t, r.Details); err != nil {
		return err
	}
	return w.supervisor.recorder.write(ctx, t, r)
}

// take returns the unwritten details of a task in a phase. due is false if nothing may be written.
func (w *heartbeatWriter) take(t *task, in phase) (r provider.ActivityRecord, due bool) {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	now := w.supervisor.options.Clock()
	if !t.heartbeats.HasUnwritten() || t.phase != in || !t.mayWrite(now) {
		return r, false
	}
	return t.heartbeats.Take(t.item.ActivityID, now), true
}

func (w *heartbeatWriter) hasProgressed(t *task) bool {
	w.supervisor.Lock()
	defer w.supervisor.Unlock()
	return t.heartbeats.HasProgressed()
}
