package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// A task may be waited for when it is cancelled: it is marked, and settles when its end is heard. Until then it is among the tasks of the
// execution, for its outcome to be found by, and for those who wait for the ends of a scope.

// waiting is whether a task's end is waited for when it is cancelled, and how it was. It is a byte, for which a Task has room.
type waiting uint8

const (
	waitsForNone waiting = iota
	// waitsForEnd: once it is cancelled.
	waitsForEnd
	// waitsWithScope: it is cancelled, with its scope.
	waitsWithScope
)

// waits has an event say that the end of what it schedules is waited for.
func waits(ev *history.Event, wait bool) {
	if wait {
		ev.Cancel = &history.CancelNote{Wait: true}
	}
}

// giveUp settles a task as cancelled, or marks it, where its end is to be waited for.
func (x *execution) giveUp(t *Task, f *history.Failure) {
	t.cancelled = true
	if t.waits == waitsForNone {
		x.settle(t, nil, f)
		return
	}
	t.failure = f
	if t.ofScope() != nil {
		t.waits = waitsWithScope
	}
	if t.kind == history.TimerCreated { // a child between two attempts
		x.settleEnded(t, history.EndOver)
	}
}

// settleEnded settles a task that was cancelled, and has ended.
func (x *execution) settleEnded(t *Task, ended string) {
	f := *t.failure
	f.Ended = ended
	x.settle(t, nil, &f)
}

// ofScope is the cancellation of the task's scope, where it is what the task was given up with.
func (t *Task) ofScope() *Cancellation {
	if t.scope == nil || t.scope.cancelled == nil || t.failure != &t.scope.cancelled.Failure {
		return nil
	}
	return t.scope.cancelled
}

// EndedWith is the cancellation of the task's scope, if the task was given up with it, and its end was waited for; else nil.
func (t *Task) EndedWith() *Cancellation {
	if t.waits != waitsWithScope {
		return nil
	}
	return t.scope.cancelled
}

// ends are those tasks of a scope, and of the scopes under it, whose end is waited for when they are cancelled. A scope of which nothing asked
// for that has none. All who wait for them wait for one thing: ten thousand coroutines may do so at once.
type ends struct {
	fresh []*Task // that nobody has begun to wait for; some are done
	left  int     // how many of the others have not ended
	none  *Task   // settles when that is none; nil while nobody waits
}

// endsOf are those of a scope; nil where there are none.
func (x *execution) endsOf(s *scope) **ends {
	if s == shield {
		return &x.shielded
	}
	return &s.ends
}

// waitFor notes that the end of a task is waited for when it is cancelled.
func (x *execution) waitFor(t *Task) {
	t.waits = waitsForEnd
	for s := t.scope; s != nil; s = s.parent {
		e := x.endsOf(s)
		if *e == nil {
			*e = &ends{}
		}
		if f := &(*e).fresh; len(*f) == cap(*f) {
			*f = slices.DeleteFunc(*f, (*Task).IsDone)
		}
		(*e).fresh = append((*e).fresh, t)
	}
}

// AwaitEnds has what was asked for through the context, or one of a scope under its own, and whose end is waited for, come to it: it waits for
// what is cancelled, and cancels what is not first. What comes to be asked for meanwhile is included. In the scope that no cancel reaches, which
// all share, it cancels nothing.
func (c *Context) AwaitEnds(reason string) {
	for c.x.enter(); ; c.x.enter() {
		e := *c.x.endsOf(c.scope)
		if e == nil {
			return
		}
		if open := c.x.take(e, c.scope == shield); len(open) > 0 {
			c.x.cancel(reason, "", open...)
		}
		if e.left == 0 {
			return
		}
		if e.none == nil {
			e.none = &Task{x: c.x}
		}
		c.x.await(shield, []*Task{e.none})
	}
}

// take begins to wait for the fresh ones that are not done, or those of them alone that are cancelled. It returns what is to be cancelled.
func (x *execution) take(e *ends, cancelled bool) (open []*Task) {
	left := e.fresh[:0]
	for _, t := range e.fresh {
		switch {
		case t.done:
			continue
		case cancelled && !t.cancelled:
			left = append(left, t)
			continue
		case !t.cancelled:
			open = append(open, t)
		}
		if x.awaited == nil {
			x.awaited = map[*Task][]*ends{}
		}
		x.awaited[t], e.left = append(x.awaited[t], e), e.left+1
	}
	clear(e.fresh[len(left):])
	e.fresh = left
	slices.SortFunc(open, byKind)
	return open
}

// tellEnd tells those who wait for the end of a task.
func (x *execution) tellEnd(t *Task) {
	for _, e := range x.awaited[t] {
		if e.left--; e.left == 0 && e.none != nil {
			none := e.none
			e.none = nil
			x.settle(none, nil, nil)
		}
	}
	delete(x.awaited, t)
}

// within reports whether a scope is another, or under it.
func (s *scope) within(o *scope) bool {
	for s != nil && s != o {
		s = s.parent
	}
	return s != nil
}
