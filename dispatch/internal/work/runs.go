package work

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

// The end of an activity that is waited for when it is cancelled is sent, whatever it is (R23). It is the end of all code that runs for
// the activity: so one delivery at a time runs such an activity, or says that nothing does. It takes the run before it looks whether the
// activity is cancelled: of two copies of a message one sees the other, or both see the cancel.

// heldRun is the run of an activity in the hands of a task, until the run is over, and what was before it.
type heldRun struct {
	// own is the run; one without a Token is another's by now.
	own provider.Run
	// before is the run that the activity had until then, left what its record said.
	before *provider.Run
	left   provider.ActivityRecord

	// keepAt is when the run is to be renewed, failing that this could not be done last.
	keepAt           time.Time
	keeping, failing bool
}

// hasRun reports whether a task holds the run of its activity.
func (t *task) hasRun() bool { return t.run != nil && t.run.own.Token != "" }

// runs takes the runs of activities, and renews them. The manager's lock guards it.
type runs struct {
	manager  *manager
	provider provider.Provider
}

// take makes a task the one that runs its activity.
func (r *runs) take(ctx context.Context, t *task) (provider.RunClaim, error) {
	next := r.next(t)
	taken, err := r.provider.ClaimRun(ctx, next)
	if taken.Outcome == nil && taken.Held { // also where the cancel record could not be read then: the run is let go of
		r.took(t, next, &taken)
	}
	return taken, err
}

// next is the run that a task asks for now.
func (r *runs) next(t *task) provider.Run {
	m := r.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	next := provider.Run{
		ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Segment: t.item.Segment, Attempt: t.item.Attempt,
		Until: m.options.Clock().Add(m.options.LockTimeout),
	}
	if t.hasRun() {
		next.Token = t.run.own.Token
	} else {
		next.Token = rand.Text()
	}
	return next
}

// took notes that a task has its run.
func (r *runs) took(t *task, own provider.Run, taken *provider.RunClaim) {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	if !t.hasRun() || taken.PreviousRun != nil { // the second where it has waited for longer than its run, which another had meanwhile
		t.run = &heldRun{before: taken.PreviousRun, left: taken.PreviousRecord}
		if before := t.run.before; before != nil && before.Abandoned {
			t.past.givenUp()
		}
	}
	r.kept(t.run, own)
}

// kept notes that a task has its run until later.
func (r *runs) kept(h *heldRun, own provider.Run) {
	h.own = own
	h.keepAt = own.Until.Add(-r.grace() - r.manager.options.LockRenewalBuffer)
	h.failing = false
}

// grace is how long before the end of its run an activity is stopped whose run was not renewed: for so long its code may take to end, and
// when another delivery may begin, this one is waited for no more.
func (r *runs) grace() time.Duration {
	o := r.manager.options
	return min(o.grace(), (o.LockTimeout-o.LockRenewalBuffer)/2)
}

// ends is when a task is to be stopped, unless its run is renewed before. One whose context has ended has until the end of the run.
func (r *runs) ends(t *task) time.Time {
	if t.stop.why != nil {
		return t.run.own.Until
	}
	return t.run.own.Until.Add(-r.grace())
}

// check stops an activity whose run could not be renewed, while no other delivery can have begun it; by the end of the run it is given up.
func (r *runs) check(t *task, now time.Time) {
	if !t.hasRun() || now.Before(r.ends(t)) {
		return
	}
	if !t.stop.lost {
		t.lose(now)
		r.manager.news.expired = append(r.manager.news.expired, t)
	}
	t.stop.giveUpBy(t.run.own.Until)
}

// due renews the run of a task where that is due, and returns when that, or the end of the run, is.
func (r *runs) due(t *task, now time.Time) (next time.Time) {
	if !t.hasRun() {
		return time.Time{}
	}
	if !t.stop.lost {
		next = r.ends(t)
	}
	switch h := t.run; {
	case h.keeping:
	case h.keepAt.After(now):
		next = intake.Earlier(next, h.keepAt)
	default:
		h.keeping = true
		r.manager.beside(t.batch, func(ctx context.Context) { r.keep(ctx, t) })
	}
	return next
}

// keep renews the run of a running task. A run that is another's by now is lost.
func (r *runs) keep(ctx context.Context, t *task) {
	m := r.manager
	limited, stop := context.WithTimeout(ctx, m.options.LockRenewalBuffer/2)
	defer stop()
	next := r.next(t)
	taken, err := r.provider.ClaimRun(limited, next)

	m.mu.Lock()
	now := m.options.Clock()
	h := t.run
	h.keeping = false
	firstFailure := false
	switch {
	case t.phase != phaseRunning:
	case err != nil:
		h.keepAt = now.Add(m.options.LockRenewalBuffer / intake.RenewalTries)
		firstFailure, h.failing = !h.failing, true
	case !taken.Held:
		h.own = provider.Run{} // there is none to keep any more
		t.lose(now)
	default:
		r.kept(h, next)
		m.heed(t, taken.Cancel, now)
	}
	m.mu.Unlock()

	if firstFailure {
		t.log().WarnContext(ctx, "activity claim renewal failed, retrying", "event", logevent.ActivityClaimRenewalFailed,
			"error", err)
	}
	m.look()
}

// keepOutcomes writes down how runs ended, before their outcomes are sent, and returns what may be sent: the rest goes back to the queue. What runs at most
// once is sent in any case, since nobody will come to it again.
// Should an outcome be sent, and its record or a copy of it come again before a turn has taken the outcome, the code does not run beside
// what follows.
func (r *runs) keepOutcomes(ctx context.Context, ends []finished) []finished {
	if !slices.ContainsFunc(ends, endsRun) {
		return ends
	}
	var keeping sync.WaitGroup
	for i := range ends {
		if t, o := ends[i].task, ends[i].outcome; endsRun(ends[i]) {
			keeping.Go(func() { ends[i].back = !r.keepOutcome(ctx, t, named(t, o)) })
		}
	}
	keeping.Wait()
	return ends
}

// endsRun reports whether an outcome ends the run of its activity.
func endsRun(e finished) bool {
	return !e.back && e.outcome != nil && e.outcome.Pending == nil && e.task.hasRun() && !e.task.began.IsZero()
}

func (r *runs) keepOutcome(ctx context.Context, t *task, o *provider.ActivityOutcome) (kept bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer stop()
	err := r.provider.CompleteRun(ctx, t.run.own, o)
	switch {
	case err == nil:
		return true
	case t.item.WaitForCancellation && (!t.item.AtMostOnce || errors.Is(err, provider.ErrLockLost)): // another attempt may run by now
		t.log().ErrorContext(ctx, "activity outcome not stored, releasing the work item",
			"event", logevent.ActivityOutcomeNotStored, "error", err)
		return false
	default:
		t.log().WarnContext(ctx, "at-most-once outcome not stored, sending it anyway",
			"event", logevent.ActivityOutcomeSentUnstored, "error", err)
		return true
	}
}

// leave lets go of the runs of tasks that go back to their queue, at best: a run that stays expires by itself, and says that its activity
// may have begun.
func (r *runs) leave(ctx context.Context, tasks []*task) {
	if !slices.ContainsFunc(tasks, (*task).hasRun) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var leaving sync.WaitGroup
	for _, t := range tasks {
		if t.hasRun() {
			leaving.Go(func() { r.leaveOne(ctx, t) })
		}
	}
	leaving.Wait()
}

func (r *runs) leaveOne(ctx context.Context, t *task) {
	ctx, stop := context.WithTimeout(ctx, recordLimit)
	defer stop()
	own, leave := t.run.own, t.run.before
	if !t.began.IsZero() {
		over := own
		over.Until, over.Abandoned = r.manager.options.Clock(), t.leaked
		leave = &over
	}
	if err := r.provider.ReleaseRun(ctx, own, leave); err != nil {
		t.log().WarnContext(ctx, "activity claim release failed, the next delivery waits until it expires",
			"event", logevent.ActivityClaimReleaseFailed, "error", err)
	}
}
