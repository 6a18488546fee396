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

// AwaitEnds has what was asked for through the context, or one of a scope under its own, and whose end is waited for, come to it: it waits for
// what is cancelled, and cancels what is not first. What comes to be asked for meanwhile is included. In the scope that no cancel reaches, which
// all share, it cancels nothing.
func (c *Context) AwaitEnds(reason string) {
	for {
		open := c.unended()
		if len(open) == 0 {
			return
		}
		c.x.cancel(reason, "", slices.DeleteFunc(slices.Clone(open), func(t *Task) bool { return t.cancelled })...)
		for i := range open {
			c.x.await(shield, open[i:i+1])
		}
	}
}

// unended are the tasks of the context's scope, and of those under it, whose end is to be waited for.
func (c *Context) unended() (open []*Task) {
	c.x.enter()
	for _, t := range c.x.tasks {
		if t.waits != waitsForNone && !t.done && t.scope.within(c.scope) && (t.cancelled || c.scope != shield) {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, byKind)
	return open
}

// within reports whether a scope is another, or under it.
func (s *scope) within(o *scope) bool {
	for s != nil && s != o {
		s = s.parent
	}
	return s != nil
}
