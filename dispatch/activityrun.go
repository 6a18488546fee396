package dispatch

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The end of an activity that is waited for when it is cancelled is told, whatever it is (R23). It is the end of all that runs of it: so
// one delivery at a time runs such an activity, or tells that nothing does. It takes the run before it looks whether the activity is cancelled: of two
// copies of a message one sees the other, or both see the cancel.

// takeRun makes a task the one that runs its activity, and looks then whether it is cancelled.
func (w *Worker) takeRun(ctx context.Context, t *task) (cancel provider.CancelInfo, heard int64, hindered *ending) {
	it := &t.item
	r := w.manager.nextRun(t)
	taken, err := w.provider.TakeRun(ctx, r)
	switch {
	case err != nil:
		w.options.Logger.ErrorContext(ctx, "an activity that is waited for could not be taken, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return cancel, 0, &ending{back: true}
	case taken.Outcome != nil: // it may have been told, or not
		return cancel, 0, &ending{outcome: taken.Outcome}
	case !taken.Held:
		return cancel, 0, w.copyOf(ctx, t)
	}
	w.manager.took(t, r, &taken)
	return taken.Cancel, taken.Heard, nil
}

// copyOf is the end of a task whose activity another delivery runs, or has just left: it comes again when that is over. What is not of the
// current attempt is over by now.
func (w *Worker) copyOf(ctx context.Context, t *task) *ending {
	it := &t.item
	if current, hindered := w.isCurrent(ctx, t); hindered != nil || !current {
		return cmp.Or(hindered, &ending{})
	}
	w.options.Logger.InfoContext(ctx, "another delivery of an activity that is waited for has begun it, this one goes back to the queue",
		"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "attempt", it.Attempt, "attemptCount", it.Record.ReceiveCount)
	return &ending{back: true}
}

// isCurrent reports whether a task is of the current attempt of its activity.
func (w *Worker) isCurrent(ctx context.Context, t *task) (current bool, hindered *ending) {
	it := &t.item
	if it.Retry == nil {
		return true, nil
	}
	at, err := w.provider.ReadRetry(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		w.options.Logger.ErrorContext(ctx, "it cannot be read at which attempt an activity is that is waited for, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return false, &ending{back: true}
	}
	t.previous = at.Ended
	return at.Attempt == 0 || at.Attempt == it.Attempt, nil
}

// keepOutcomes writes down how runs ended, before that is told, and returns what may be told: the rest goes back to the queue. Should it
// be told, and its record come again, or a copy of it, before a turn has taken that, its code does not run beside what follows.
func (w *Worker) keepOutcomes(ctx context.Context, ends []ended) []ended {
	var keeping sync.WaitGroup
	for i := range ends {
		if t, o := ends[i].task, ends[i].outcome; !ends[i].back && o != nil && t.run.Token != "" && !t.began.IsZero() {
			keeping.Go(func() { ends[i].back = !w.keepOutcome(ctx, t, named(t, o)) })
		}
	}
	keeping.Wait()
	return ends
}

func (w *Worker) keepOutcome(ctx context.Context, t *task, o *provider.ActivityOutcome) (kept bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer stop()
	err := w.provider.EndRun(ctx, t.run, o)
	if err != nil {
		w.options.Logger.ErrorContext(ctx, "the outcome of an activity that is waited for could not be kept, its work item goes back to the queue", t.about("error", err)...)
	}
	return err == nil
}

// nextRun is the run that a task asks for now.
func (m *manager) nextRun(t *task) provider.Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := provider.Run{
		ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Segment: t.item.Segment, Attempt: t.item.Attempt, Token: t.run.Token,
		Until: m.options.Clock().Add(m.options.LockTimeout),
	}
	if r.Token == "" {
		r.Token = rand.Text()
	}
	return r
}

// took notes that a task has its run.
func (m *manager) took(t *task, r provider.Run, taken *provider.Taken) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.run.Token == "" {
		t.before, t.left = taken.Before, taken.Left
	}
	t.run, t.keepAt = r, r.Until.Add(-m.options.LockRenewalBuffer)
}

// leaveRuns lets go of the runs of tasks that go back to their queue, at best: what stays runs out by itself, and says that its activity may
// have begun.
func (w *Worker) leaveRuns(ctx context.Context, tasks []*task) {
	ctx = context.WithoutCancel(ctx)
	var leaving sync.WaitGroup
	for _, t := range tasks {
		if t.run.Token != "" {
			leaving.Go(func() { w.leaveRun(ctx, t) })
		}
	}
	leaving.Wait()
}

func (w *Worker) leaveRun(ctx context.Context, t *task) {
	ctx, stop := context.WithTimeout(ctx, recordLimit)
	defer stop()
	own, leave := t.run, t.before
	if !t.began.IsZero() {
		over := own
		over.Until, leave = w.options.Clock(), &over
	}
	if err := w.provider.LeaveRun(ctx, own, leave); err != nil {
		w.options.Logger.WarnContext(ctx, "an activity that is waited for goes back to its queue, and is not begun again for as long as a lease takes", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
}

// runDue takes the run of a task again where that is due, and says when it is.
func (m *manager) runDue(t *task, now time.Time) (next time.Time) {
	switch {
	case t.run.Token == "" || t.keeping:
		return time.Time{}
	case t.keepAt.After(now):
		return t.keepAt
	}
	t.keeping = true
	go m.keepRun(t.shift.ctx, t)
	return time.Time{}
}

// keepRun takes the run of a running task again. One that is another's by now is lost.
func (m *manager) keepRun(ctx context.Context, t *task) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), m.options.LockRenewalBuffer/2)
	defer stop()
	r := m.nextRun(t)
	taken, err := m.options.Provider.TakeRun(ctx, r)
	m.mu.Lock()
	now := m.options.Clock()
	t.keeping = false
	switch {
	case t.phase != phaseRunning:
	case err != nil:
		t.keepAt = now.Add(m.options.LockRenewalBuffer / renewalTries)
	case !taken.Held:
		m.lose(t, now)
	default:
		t.run, t.keepAt = r, r.Until.Add(-m.options.LockRenewalBuffer)
		m.heed(t, taken.Cancel, now)
	}
	m.mu.Unlock()
	if err != nil {
		m.options.Logger.WarnContext(ctx, "the run of an activity that is waited for could not be renewed, it is tried again", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
	m.look()
}

// isWaitedFor reports whether somebody waits for the end of an activity that is cancelled.
func (t *task) isWaitedFor() bool { return t.item.WaitCancel && !t.deleted && !t.unheard }

// endedAs adds to the outcome of an activity that was cancelled how it ended, where that is waited for.
func (t *task) endedAs(e ending, how string) ending {
	if e.outcome == nil || !t.item.WaitCancel {
		return e
	}
	o, seenAt := *e.outcome, t.signalled.UTC()
	o.Ended, o.SeenAt = cmp.Or(o.Ended, how), &seenAt
	return ending{outcome: &o}
}

// givenUp is what is told of an activity that did not heed its cancel within the grace.
func (t *task) givenUp() ending {
	if !t.isWaitedFor() {
		return ending{}
	}
	return t.endedAs(ending{outcome: t.cancelled(t.signal)}, history.EndGivenUp)
}

func (t *task) cancelled(why *perdure.CancelledError) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{
		ActivityID: t.item.ActivityID, Attempt: t.item.Attempt,
		Error: &history.Failure{Type: history.TypeCancelled, Reason: string(why.Reason), Message: why.Message},
	}
}

// notBegun is the end of an activity that was found cancelled before its code began here, where that is waited for: whether some began
// before, its run tells, and its attempt. Of an attempt that is not the current one nothing is told.
func (w *Worker) notBegun(ctx context.Context, t *task, cancel provider.CancelInfo) *ending {
	if !t.isWaitedFor() {
		return &ending{}
	}
	if current, hindered := w.isCurrent(ctx, t); hindered != nil || !current {
		return cmp.Or(hindered, &ending{})
	}
	if t.signalled = t.left.SeenAt; t.signalled.IsZero() {
		t.signalled = w.options.Clock()
	}
	e := t.endedAs(ending{outcome: t.cancelled(&perdure.CancelledError{Reason: perdure.CancelReason(cancel.Reason), Message: cancel.Message})}, t.endBefore())
	return &e
}

// endBefore is how an activity ended whose code is not begun here.
func (t *task) endBefore() string {
	switch {
	case t.left.End == provider.EndFinished || t.left.End == provider.EndStopped: // and could not be told
		return history.EndReturned
	case t.left.End == provider.EndLeaked:
		return history.EndGivenUp
	case t.before != nil && t.before.Attempt == t.item.Attempt:
		return history.EndWorkerGone
	case t.item.Attempt > 1:
		return cmp.Or(t.previous, history.EndReturned)
	default:
		return history.EndNeverBegan
	}
}
