package activities

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/dispatch/internal/runlease"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// runLeases holds the run leases of the activities that run in a worker. The supervisor's lock guards it.
type runLeases struct {
	supervisor *supervisor
	client     *runlease.Client
}

func newRunLeases(s *supervisor, p provider.Provider) *runLeases {
	o := s.options
	return &runLeases{s, runlease.NewClient(p, runlease.Options{
		Clock: o.Clock, Timeout: o.LockTimeout, RenewalBuffer: o.LockRenewalBuffer,
		GracePeriod: o.gracePeriod(),
	})}
}

// acquire acquires the run lease for a task, or extends it.
func (r *runLeases) acquire(ctx context.Context, t *task) (provider.RunClaim, error) {
	next := r.next(t)
	claim, err := r.client.Claim(ctx, next)
	if claim.Outcome == nil && claim.Held { // even if the cancel record was unreadable, so that the lease is released
		r.acquired(t, next, &claim)
	}
	return claim, err
}

func (r *runLeases) next(t *task) provider.Run {
	r.supervisor.Lock()
	defer r.supervisor.Unlock()
	return r.client.Next(t.run, t.item)
}

func (r *runLeases) acquired(t *task, next provider.Run, claim *provider.RunClaim) {
	r.supervisor.Lock()
	defer r.supervisor.Unlock()
	before := t.run
	t.run = r.client.Acquired(before, next, claim)
	if previous, _ := t.run.Previous(); t.run != before && previous != nil && previous.Abandoned {
		t.earlier.end = history.OutcomeAbandoned
	}
}

// stopAt returns the time at which a task is stopped unless its lease is renewed.
func (r *runLeases) stopAt(t *task) time.Time { return r.client.StopAt(t.run, t.stop.reason != nil) }

// check stops an activity whose lease could not be renewed before another delivery may start. At the end of the lease,
// the activity is abandoned.
func (r *runLeases) check(t *task, now time.Time) {
	if !t.run.IsHeld() || now.Before(r.stopAt(t)) {
		return
	}
	if !t.stop.lockLost {
		r.supervisor.loseLock(t, now)
		r.supervisor.updates.expired = append(r.supervisor.updates.expired, t)
	}
	t.stop.abandonBy(t.run.Until())
}

// renewDue renews the lease of a task if a renewal is due. It returns the time of the next call.
func (r *runLeases) renewDue(t *task, now time.Time) (next time.Time) {
	if !t.run.IsHeld() {
		return time.Time{}
	}
	if !t.stop.lockLost {
		next = r.stopAt(t)
	}
	start, renewAt := t.run.StartRenewal(now)
	if start {
		r.supervisor.inBackground(t.batch, func(ctx context.Context) { r.renew(ctx, t) })
	}
	return intake.Earlier(next, renewAt)
}

// renew renews the lease of a running task. If another delivery has the lease, the lock is lost.
func (r *runLeases) renew(ctx context.Context, t *task) {
	s := r.supervisor
	limited, stop := context.WithTimeout(ctx, s.options.LockRenewalBuffer/2)
	defer stop()
	next := r.next(t)
	claim, err := r.client.Claim(limited, next)

	s.Lock()
	now := s.options.Clock()
	t.run.EndRenewal()
	firstFailure := false
	switch {
	case t.phase != phaseRunning:
	case err != nil:
		firstFailure = r.client.Failed(t.run, now)
	case !claim.Held:
		t.run.Lose()
		s.loseLock(t, now)
	default:
		r.client.Extended(t.run, next)
		s.stopIfCancelled(t, claim.Cancel, now)
	}
	s.Unlock()

	if firstFailure {
		t.Log().WarnContext(ctx, "activity claim renewal failed, retrying",
			"event", logevent.ActivityClaimRenewalFailed, "error", err)
	}
	s.Check()
}

// storeOutcomes stores outcomes with their run leases before they are sent. It marks a task for release if its outcome
// could not be stored.
func (r *runLeases) storeOutcomes(ctx context.Context, finished []finishedTask) []finishedTask {
	if !slices.ContainsFunc(finished, endsRun) {
		return finished
	}
	concurrently(finished, endsRun, func(e *finishedTask) {
		t := e.task
		e.release = !r.client.Complete(ctx, t, t.run, outcome.WithRun(t.item, e.outcome))
	})
	return finished
}

// endsRun reports whether a result ends the run lease of its activity.
func endsRun(e finishedTask) bool {
	return !e.release && e.outcome != nil && e.outcome.Pending == nil && e.task.run.IsHeld() && e.task.hasStarted()
}

// release releases the run leases of tasks that return to their queue.
func (r *runLeases) release(ctx context.Context, tasks []*task) {
	holdsRun := func(t *task) bool { return t.run.IsHeld() }
	if slices.ContainsFunc(tasks, holdsRun) {
		concurrently(tasks, holdsRun, func(of **task) {
			t := *of
			r.client.Release(ctx, t, t.run, t.hasStarted(), t.mayStillRun)
		})
	}
}
