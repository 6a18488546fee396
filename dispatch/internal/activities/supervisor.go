package activities

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/cancelpoll"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// supervisor supervises the activities that run in a worker: it renews leases, reads cancellations, writes heartbeats,
// and abandons code that ignores the end of its context. It has one timer for all activities, which short ones never
// need, and goroutines only for calls of the provider. Its lock also guards its parts.
type supervisor struct {
	sync.Mutex

	options   *Options
	abandoned atomic.Int64 // activities

	cancels    *cancelpoll.Poller
	leases     *leases
	runLeases  *runLeases
	heartbeats *heartbeatWriter
	recorder   *recorder

	batches map[*batch]bool
	timer   *time.Timer
	wakeAt  time.Time // when the timer fires; zero if it is not set
	updates updates
}

// updates holds events that are logged after the lock is released.
type updates struct {
	cancels []observation
	expired []*task // stopped because their run leases could not be renewed
}

// observation is a cancellation that a running activity has observed.
type observation struct {
	task        *task
	requestedAt time.Time // zero if unknown
	awaited     bool      // the call waits for the end of the activity
}

func newSupervisor(w *Worker, crashes *isolation.Guard) *supervisor {
	o, p := &w.options, w.Provider
	s := &supervisor{options: o, batches: map[*batch]bool{}}
	s.recorder = &recorder{provider: p, options: o}
	s.cancels = cancelpoll.New(w.Base, s, w.reporter.ReportIfDue)
	s.leases = &leases{supervisor: s, provider: p}
	s.runLeases = newRunLeases(s, p)
	s.heartbeats = &heartbeatWriter{supervisor: s, payloads: w.payloads, crashes: crashes}
	return s
}

func (s *supervisor) enter(b *batch) {
	s.Lock()
	defer s.Unlock()
	s.batches[b] = true
}

// exit ends the supervision of a batch whose activities have all ended.
func (s *supervisor) exit(b *batch) {
	s.Lock()
	delete(s.batches, b)
	s.Unlock()
	b.background.end()
}

// start starts the supervision of an activity and returns the context of its code. ok is false if the activity must
// not start, because its batch is ending or it has lost its lock.
func (s *supervisor) start(t *task) (ctx context.Context, ok bool) {
	ctx, cancel := context.WithCancelCause(t.batch.activityCtx)
	s.Lock()
	defer s.Unlock()
	now := s.options.Clock()
	if !s.mayStart(t, now) {
		cancel(nil)
		return nil, false
	}

	t.phase, t.startedAt, t.cancel = phaseRunning, now, cancel
	t.heartbeats.Start(now)
	t.lease.schedule(s.leases.firstRenewal(t))
	firstPoll := s.cancels.Watch(t.batch.ctx, &cancelpoll.Activity{
		InstanceID: t.item.InstanceID, ExecutionID: t.item.ExecutionID,
		CancelsFrom: t.cancelsFrom, Interval: t.pollInterval, StartedAt: now,
	})
	s.WakeAt(intake.Earlier(intake.Earlier(now.Add(s.options.LeaseAfter), firstPoll), t.batch.stopAt))
	if t.run.IsHeld() {
		s.WakeAt(intake.Earlier(t.run.RenewAt(), s.runLeases.stopAt(t)))
	}
	return ctx, true
}

func (s *supervisor) mayStart(t *task, now time.Time) bool {
	b := t.batch
	switch {
	case b.stopReason != nil, b.ctx.Err() != nil, !b.stopAt.IsZero() && !now.Before(b.stopAt):
		return false
	case t.run.IsHeld() && !now.Before(s.runLeases.stopAt(t)):
		return false
	default:
		return t.item.Record.Held(now)
	}
}

// end ends the supervision of an activity whose code has returned. It returns false if the activity was abandoned
// before, so that its result must not be sent.
func (s *supervisor) end(t *task) bool {
	s.Lock()
	defer s.Unlock()
	if t.phase != phaseRunning {
		return false
	}
	s.leave(t)
	return true
}

// leave ends the supervision of an activity whose code has returned or is abandoned.
func (s *supervisor) leave(t *task) {
	t.phase = phaseEnded
	s.cancels.Unwatch(t.item.ExecutionID, t.pollInterval)
}

// settled ends the supervision of the records of finished tasks. If a leased record could not be deleted, its lease is
// renewed until the batch ends. The records of the batch are deleted again then.
func (s *supervisor) settled(finished []finishedTask) {
	s.Lock()
	defer s.Unlock()
	for _, e := range finished {
		if h := e.task.item.Record.Hold; e.release || h == nil || h.Ended() {
			e.task.phase = phaseSettled
		}
	}
}

// stopAll stops all activities of a batch. No more of its activities start.
func (s *supervisor) stopAll(b *batch, reason *perdure.CancelledError) {
	s.Lock()
	if b.stopReason == nil {
		b.stopReason = reason
	}
	s.Unlock()
	s.Check()
}

// stopIfCancelled stops a running activity if it is cancelled.
func (s *supervisor) stopIfCancelled(t *task, c provider.CancelInfo, now time.Time) {
	if !c.Requested {
		return
	}
	first := t.stop.reason == nil
	t.stop.setCancelled(&c)
	if first {
		s.updates.cancels = append(s.updates.cancels, observation{t, c.RequestedAt, t.isEndAwaited()})
		if t.isEndAwaited() && t.item.Record.Hold == nil {
			t.lease.schedule(now) // so that a death of the worker in the grace period is detected soon
		}
	}
	s.stop(t, &perdure.CancelledError{Reason: perdure.CancelReason(c.Reason), Message: c.Message}, now)
}

// StopCancelled implements cancelpoll.Supervisor.
func (s *supervisor) StopCancelled(executionID string, cancels provider.Cancels) {
	if len(cancels) == 0 {
		return
	}
	now := s.options.Clock()
	for b := range s.batches {
		for i := range b.tasks {
			if t := &b.tasks[i]; t.phase == phaseRunning && t.item.ExecutionID == executionID {
				s.stopIfCancelled(t, cancels.Of(t.item.ActivityID), now)
			}
		}
	}
}

// WakeAt calls Check at the given time, unless an earlier call is scheduled. It implements cancelpoll.Supervisor.
func (s *supervisor) WakeAt(at time.Time) {
	if at.IsZero() || !s.wakeAt.IsZero() && !at.Before(s.wakeAt) {
		return
	}
	s.wakeAt = at

	after := at.Sub(s.options.Clock())
	switch {
	case after <= 0: // no timer: in virtual time, several timers would fire at once, which the race detector reports
		check := s.Check // like a timer, without the context of the caller
		go check()
	case s.timer == nil:
		s.timer = time.AfterFunc(after, s.Check)
	default:
		s.timer.Reset(after)
	}
}

// Check does the due work for all activities and schedules the next call. It implements cancelpoll.Supervisor.
func (s *supervisor) Check() {
	s.Lock()
	now := s.options.Clock()
	s.wakeAt = time.Time{}
	var next time.Time
	var abandoned []abandonment
	for b := range s.batches {
		at, more := s.checkBatch(b, now)
		next = intake.Earlier(next, at)
		abandoned = append(abandoned, more...)
	}
	next = intake.Earlier(next, s.cancels.StartDue(now))
	s.WakeAt(next)
	u := s.updates
	s.updates = updates{}
	s.recorder.observations(s, u.cancels)
	s.Unlock()

	logCancels(u.cancels)
	logExpired(u.expired)
	for i := range abandoned {
		s.abandon(&abandoned[i])
	}
}

// checkBatch does the due work for the tasks of a batch and returns the time of the next call.
func (s *supervisor) checkBatch(b *batch, now time.Time) (next time.Time, abandoned []abandonment) {
	if b.stopReason == nil && !b.stopAt.IsZero() && !now.Before(b.stopAt) {
		b.stopReason = &perdure.CancelledError{
			Reason:  perdure.ReasonInvocationDeadline,
			Message: "the invocation is about to end; increase the function timeout for longer activities",
		}
	}
	if b.stopReason == nil {
		next = b.stopAt
	}
	for i := range b.tasks {
		t := &b.tasks[i]
		if t.phase != phaseRunning {
			continue
		}
		s.leases.check(t, now)
		s.runLeases.check(t, now)
		if b.stopReason != nil {
			s.stop(t, b.stopReason, now)
		}
		next = intake.Earlier(next, s.heartbeats.writeDue(t, now))
		next = intake.Earlier(next, s.runLeases.renewDue(t, now))

		switch {
		case t.stop.reason == nil:
		case now.Before(t.stop.abandonAt):
			next = intake.Earlier(next, t.stop.abandonAt)
		default:
			abandoned = append(abandoned, abandonment{t, now.Sub(t.stop.at), now.Sub(t.startedAt)})
			s.leave(t)
		}
	}
	return intake.Earlier(next, s.leases.renewDue(b, now)), abandoned
}

// abandonment is an activity that did not return within its grace period.
type abandonment struct {
	task       *task
	ignoredFor time.Duration // since the end of its context
	ranFor     time.Duration
}

// abandon sends a result for an activity that did not return. A later result of its code is ignored.
func (s *supervisor) abandon(a *abandonment) {
	t := a.task
	s.abandoned.Add(1)
	t.batch.worker.meter.Count(intake.MetricActivitiesLeaked, t.item.Name, 1)
	faults.Report(t.batch.ctx, faults.Event{
		Kind: faults.GoroutineLeak, InstanceID: t.item.InstanceID, Activity: t.item.Name, ActivityID: t.item.ActivityID,
	})
	t.Log().WarnContext(t.batch.ctx, "activity abandoned: it did not return after its context ended",
		"event", logevent.ActivityAbandoned, "reason", string(t.stop.reason.Reason), "ignoredFor", a.ignoredFor,
		"ranFor", a.ranFor)
	t.mayStillRun = true
	r := t.resultOf(t.abandonedResult())
	go func() { // the supervisor does not wait for calls
		switch {
		case !r.release:
			s.recorder.cancelEnd(t.batch.ctx, t, t.stop.at, provider.OutcomeAbandoned)
		default:
			s.heartbeats.flush(t.batch.ctx, t)
			if r = s.countTimeout(t.batch.ctx, t, false); !r.release {
				r = t.batch.worker.addRetryTime(t.batch.ctx, t, r)
			}
		}
		t.finish(r)
	}()
}

func logCancels(observed []observation) {
	for _, o := range observed {
		t := o.task
		attrs := []any{
			"event", logevent.ActivityCancelled, "reason", string(t.stop.reason.Reason),
			"message", t.stop.reason.Message, "ranFor", t.stop.at.Sub(t.startedAt),
		}
		if !o.requestedAt.IsZero() {
			attrs = append(attrs, "decidedFor", max(0, t.stop.at.Sub(o.requestedAt))) // the clocks may differ
		}
		t.Log().InfoContext(t.batch.ctx, "activity cancelled", attrs...)
	}
}

func logExpired(expired []*task) {
	for _, t := range expired {
		t.Log().WarnContext(t.batch.ctx, "activity claim not renewed in time, stopping the activity",
			"event", logevent.ActivityClaimExpired, "ranFor", t.stop.at.Sub(t.startedAt))
	}
}
