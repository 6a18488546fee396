package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// runLease is the run lease of an activity that a task holds, and what was stored before. Only one delivery at a time
// holds the lease of an activity, so that the end that it reports is the end of all code of the activity (R23).
type runLease struct {
	// held is the lease. Its token is empty if another delivery has taken it over.
	held provider.Run
	// previous is the lease of an earlier delivery, or nil. previousRecord is what the activity's record contained.
	previous       *provider.Run
	previousRecord provider.ActivityRecord

	// renewAt is when the lease is renewed. failing is true if the last renewal failed.
	renewAt           time.Time
	renewing, failing bool
}

// holdsRun reports whether a task holds the run lease of its activity.
func (t *task) holdsRun() bool { return t.run != nil && t.run.held.Token != "" }

// runLeases acquires, renews and releases run leases. The supervisor's lock guards it.
type runLeases struct {
	supervisor *supervisor
	provider   provider.Provider
}

// acquire acquires the run lease for a task, or extends it.
func (r *runLeases) acquire(ctx context.Context, t *task) (provider.RunClaim, error) {
	next := r.next(t)
	taken, err := r.provider.ClaimRun(ctx, next)
	if taken.Outcome == nil && taken.Held { // even if the cancel record was unreadable, so that the lease is released
		r.acquired(t, next, &taken)
	}
	return taken, err
}

// next returns the lease that a task requests now.
func (r *runLeases) next(t *task) provider.Run {
	s := r.supervisor
	s.Lock()
	defer s.Unlock()
	next := provider.Run{
		ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Segment: t.item.Segment,
		Attempt: t.item.Attempt, Until: s.options.Clock().Add(s.options.LockTimeout),
	}
	if t.holdsRun() {
		next.Token = t.run.held.Token
	} else {
		next.Token = rand.Text()
	}
	return next
}

// acquired records an acquired lease.
func (r *runLeases) acquired(t *task, held provider.Run, taken *provider.RunClaim) {
	r.supervisor.Lock()
	defer r.supervisor.Unlock()
	// a task that waited for longer than its lease finds that another delivery had the lease in between
	if !t.holdsRun() || taken.PreviousRun != nil {
		t.run = &runLease{previous: taken.PreviousRun, previousRecord: taken.PreviousRecord}
		if previous := t.run.previous; previous != nil && previous.Abandoned {
			t.earlier.abandoned()
		}
	}
	r.extended(t.run, held)
}

// extended records the new end of a lease.
func (r *runLeases) extended(l *runLease, held provider.Run) {
	l.held = held
	l.renewAt = held.Until.Add(-r.gracePeriod() - r.supervisor.options.LockRenewalBuffer)
	l.failing = false
}

// gracePeriod returns how long before the end of its lease an activity is stopped if the lease was not renewed. When
// the lease ends, and another delivery may start, the activity has returned or is abandoned.
func (r *runLeases) gracePeriod() time.Duration {
	o := r.supervisor.options
	return min(o.gracePeriod(), (o.LockTimeout-o.LockRenewalBuffer)/2)
}

// stopAt returns when a task is stopped unless its lease is renewed. A task that was stopped for another reason has
// until the end of the lease.
func (r *runLeases) stopAt(t *task) time.Time {
	if t.stop.reason != nil {
		return t.run.held.Until
	}
	return t.run.held.Until.Add(-r.gracePeriod())
}

// check stops an activity whose lease could not be renewed before another delivery may start. At the end of the lease,
// the activity is abandoned.
func (r *runLeases) check(t *task, now time.Time) {
	if !t.holdsRun() || now.Before(r.stopAt(t)) {
		return
	}
	if !t.stop.lockLost {
		r.supervisor.loseLock(t, now)
		r.supervisor.updates.expired = append(r.supervisor.updates.expired, t)
	}
	t.stop.abandonBy(t.run.held.Until)
}

// renewDue renews the lease of a task if that is due. It returns when it must be called again.
func (r *runLeases) renewDue(t *task, now time.Time) (next time.Time) {
	if !t.holdsRun() {
		return time.Time{}
	}
	if !t.stop.lockLost {
		next = r.stopAt(t)
	}
	switch l := t.run; {
	case l.renewing:
	case l.renewAt.After(now):
		next = intake.Earlier(next, l.renewAt)
	default:
		l.renewing = true
		r.supervisor.inBackground(t.batch, func(ctx context.Context) { r.renew(ctx, t) })
	}
	return next
}

// renew renews the lease of a running task. If another delivery has the lease, the lock is lost.
func (r *runLeases) renew(ctx context.Context, t *task) {
	s := r.supervisor
	limited, stop := context.WithTimeout(ctx, s.options.LockRenewalBuffer/2)
	defer stop()
	next := r.next(t)
	taken, err := r.provider.ClaimRun(limited, next)

	s.Lock()
	now := s.options.Clock()
	l := t.run
	l.renewing = false
	firstFailure := false
	switch {
	case t.phase != phaseRunning:
	case err != nil:
		l.renewAt = now.Add(s.options.LockRenewalBuffer / intake.RenewalTries)
		firstFailure, l.failing = !l.failing, true
	case !taken.Held:
		l.held = provider.Run{}
		s.loseLock(t, now)
	default:
		r.extended(l, next)
		s.stopIfCancelled(t, taken.Cancel, now)
	}
	s.Unlock()

	if firstFailure {
		t.log().WarnContext(ctx, "activity claim renewal failed, retrying",
			"event", logevent.ActivityClaimRenewalFailed, "error", err)
	}
	s.Check()
}

// storeOutcomes stores outcomes with their run leases before they are sent, so that a later delivery sends the same
// outcome and does not run the code. If that fails, the task is released, except an AtMostOnce one: no later delivery
// would know its outcome.
func (r *runLeases) storeOutcomes(ctx context.Context, finished []finishedTask) []finishedTask {
	if !slices.ContainsFunc(finished, endsRun) {
		return finished
	}
	var storing sync.WaitGroup
	for i := range finished {
		if e := &finished[i]; endsRun(*e) {
			storing.Go(func() { e.release = !r.storeOutcome(ctx, e.task, withRun(e.task.item, e.outcome)) })
		}
	}
	storing.Wait()
	return finished
}

// endsRun reports whether a result ends the run lease of its activity.
func endsRun(e finishedTask) bool {
	return !e.release && e.outcome != nil && e.outcome.Pending == nil && e.task.holdsRun() && !e.task.startedAt.IsZero()
}

func (r *runLeases) storeOutcome(ctx context.Context, t *task, o *provider.ActivityOutcome) (mayBeSent bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer stop()
	err := r.provider.CompleteRun(ctx, t.run.held, o)
	lost := errors.Is(err, provider.ErrLockLost) // another attempt may run
	switch {
	case err == nil:
		return true
	case t.item.WaitForCancellation && (!t.item.AtMostOnce || lost):
		t.log().ErrorContext(ctx, "activity outcome not stored, releasing the work item",
			"event", logevent.ActivityOutcomeNotStored, "error", err)
		return false
	default:
		t.log().WarnContext(ctx, "at-most-once outcome not stored, sending it anyway",
			"event", logevent.ActivityOutcomeSentUnstored, "error", err)
		return true
	}
}

// release releases the run leases of tasks that return to their queue. If that fails, the lease expires.
func (r *runLeases) release(ctx context.Context, tasks []*task) {
	if !slices.ContainsFunc(tasks, (*task).holdsRun) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var releasing sync.WaitGroup
	for _, t := range tasks {
		if t.holdsRun() {
			releasing.Go(func() { r.releaseOne(ctx, t) })
		}
	}
	releasing.Wait()
}

// releaseOne restores the previous lease if the code did not start. Otherwise it leaves an ended lease.
func (r *runLeases) releaseOne(ctx context.Context, t *task) {
	ctx, stop := context.WithTimeout(ctx, writeTimeout)
	defer stop()
	held, remaining := t.run.held, t.run.previous
	if !t.startedAt.IsZero() {
		ended := held
		ended.Until, ended.Abandoned = r.supervisor.options.Clock(), t.mayStillRun
		remaining = &ended
	}
	if err := r.provider.ReleaseRun(ctx, held, remaining); err != nil {
		t.log().WarnContext(ctx, "activity claim release failed, the next delivery waits until it expires",
			"event", logevent.ActivityClaimReleaseFailed, "error", err)
	}
}
