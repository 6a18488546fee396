package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// The end of a task may be waited for when the task is cancelled: then the cancel is noted, and the task settles with its outcome. Until then it
// is an open task, which its outcome finds, and counts among the ends of its scopes.

// waiting is whether a task's end is waited for when it is cancelled, and how it was cancelled. It is a byte: a Task has room for no more.
type waiting uint8

const (
	waitsForNone waiting = iota
	// waitsForEnd: the task's end is waited for once it is cancelled.
	waitsForEnd
	// waitsWithScope: the task was cancelled with its scope.
	waitsWithScope
)

// recordWait records in an event that the end of what it schedules is waited for.
func recordWait(ev *history.Event, wait bool) {
	if wait {
		ev.Cancel = &history.CancelDetails{WaitForCancellation: true}
	}
}

// endOf returns how a cancelled task ended, according to an outcome. Of a child that was to be tried again, the attempt before is over.
func (t *Task) endOf(ev *history.Event) string {
	if ev.Kind == history.OutputFailed && t.child != nil && t.attempt > 1 {
		return history.OutcomeEnded
	}
	return history.CancelOutcomeOf(ev)
}

// ofScope returns the cancellation of the task's scope, if the task was cancelled with it; else nil.
func (t *Task) ofScope() *Cancellation {
	if t.scope == nil || t.scope.cancelled == nil || t.failure != &t.scope.cancelled.Failure {
		return nil
	}
	return t.scope.cancelled
}

// EndedWith returns the cancellation of the task's scope if the task was cancelled with the scope and its end is
// awaited, and otherwise nil.
func (t *Task) EndedWith() *Cancellation {
	if t.waits != waitsWithScope {
		return nil
	}
	return t.scope.cancelled
}

// ends are those tasks of a scope, and of the scopes under it, whose end is waited for when they are cancelled. A scope without such tasks has
// none. All coroutines that wait for the ends of a scope wait for one task: ten thousand may do so at once.
type ends struct {
	fresh []*Task // tasks that no coroutine waits for yet; some are done
	left  int     // how many of the others have not ended
	none  *Task   // settles when left is 0; nil while no coroutine waits
}

// endsOf returns where the ends of a scope are; nothing is there when it has none.
func (ts *tasks) endsOf(s *scope) **ends {
	if s == shield {
		return &ts.shielded
	}
	return &s.ends
}

// waitFor notes that the end of a task is waited for when it is cancelled. In the scope that no cancel reaches that is noted when the task is
// cancelled: waiting for the ends there cancels nothing, and would find all that goes on.
func (ts *tasks) waitFor(t *Task) {
	t.waits = waitsForEnd
	for s := t.scope; s != nil && s != shield; s = s.parent {
		ts.waitIn(s, t)
	}
}

// waitIn adds a task to the ends of a scope.
func (ts *tasks) waitIn(s *scope, t *Task) {
	e := ts.endsOf(s)
	if *e == nil {
		*e = &ends{}
	}
	(*e).fresh = append(roomy((*e).fresh, (*Task).IsDone), t)
}

// AwaitEnds waits for the ends of tasks that settle only after their end (WaitCancel): the tasks of the context's scope
// and of the scopes below it, also tasks that are scheduled during the wait. It first cancels the tasks that are not
// cancelled. The scope of WithoutCancel is shared by all coroutines: AwaitEnds cancels nothing in it.
func (c *Context) AwaitEnds(reason string) {
	for c.x.scheduler.enter(); ; c.x.scheduler.enter() {
		e := *c.x.tasks.endsOf(c.scope)
		if e == nil {
			return
		}

		if open := c.x.tasks.awaitFresh(e); len(open) > 0 {
			c.x.scopes.cancelByCode(reason, "", open...)
		}
		if e.left == 0 {
			return
		}

		if e.none == nil {
			e.none = &Task{x: c.x}
		}
		c.x.scheduler.await(shield, []*Task{e.none})
	}
}

// awaitFresh begins to wait for the fresh tasks that are not done. It returns those that are to be cancelled.
func (ts *tasks) awaitFresh(e *ends) (open []*Task) {
	for _, t := range e.fresh {
		if t.done {
			continue
		}
		if !t.cancelled {
			open = append(open, t)
		}

		if ts.awaited == nil {
			ts.awaited = map[*Task][]*ends{}
		}
		ts.awaited[t] = append(ts.awaited[t], e)
		e.left++
	}

	clear(e.fresh)
	e.fresh = e.fresh[:0]
	slices.SortFunc(open, byKind)
	return open
}

// hasEnded counts a task as ended where its end is waited for.
func (ts *tasks) hasEnded(t *Task) {
	for _, e := range ts.awaited[t] {
		e.left--
		if e.left == 0 && e.none != nil {
			none := e.none
			e.none = nil
			ts.settle(none, nil, nil)
		}
	}
	delete(ts.awaited, t)
}
