package tasks

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
)

// A cancellation may wait for the end of a task. The task then stays open until its outcome arrives. It is counted in
// the ends of its scopes.

// endWait indicates whether a cancellation waits for the end of a task. It is a byte to keep a Task small.
type endWait uint8

const (
	waitsForNone endWait = iota
	// waitsForEnd: a cancellation waits for the end of the task.
	waitsForEnd
	// waitsWithScope: the task was cancelled with its scope.
	waitsWithScope
)

// RecordWait records in an event that a cancellation waits for the end of the scheduled task.
func RecordWait(ev *history.Event, wait bool) {
	if wait {
		ev.Cancel = &history.CancelDetails{WaitForCancellation: true}
	}
}

// scopeCancellation returns the cancellation of the task's scope if the task was cancelled with the scope, or nil.
func (t *Task) scopeCancellation() *Cancellation {
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

// ends are the tasks of a scope, and of the scopes below it, whose end a cancellation waits for. All coroutines that
// wait for the ends of a scope wait for one task, because there may be ten thousand such coroutines.
type ends struct {
	fresh []*Task // tasks that no coroutine waits for; some may be done
	left  int     // the number of awaited tasks that have not ended
	none  *Task   // settles when left is 0; nil if no coroutine waits
}

// endWaits holds the ends that cancellations of an execution wait for.
type endWaits struct {
	set      *Set
	shielded *ends             // of the shielded scope
	awaited  map[*Task][]*ends // by tasks whose end is awaited now
}

// of returns a pointer to the ends of a scope, which may be nil.
func (w *endWaits) of(in *Scope) **ends {
	if in == shield {
		return &w.shielded
	}
	return &in.ends
}

// add makes a cancellation wait for the end of a task. A task of the shielded scope is added when it is cancelled. A
// wait for the ends of that scope cancels nothing, and would include all running tasks.
func (w *endWaits) add(t *Task) {
	t.waits = waitsForEnd
	for in := t.scope; in != nil && in != shield; in = in.parent {
		w.addIn(in, t)
	}
}

func (w *endWaits) addIn(in *Scope, t *Task) {
	e := w.of(in)
	if *e == nil {
		*e = &ends{}
	}
	(*e).fresh = append(coroutine.CompactOrGrow((*e).fresh, (*Task).IsDone), t)
}

// AwaitEnds waits for the ends of tasks that settle only after their end. It waits for the tasks of a scope and of the
// scopes below it, including tasks that are scheduled during the wait. It first cancels the tasks that are not
// cancelled. It cancels nothing in the shielded scope, which all coroutines share.
func (c *Scopes) AwaitEnds(in *Scope, reason string) {
	s := c.set
	for s.scheduler.Enter(); ; s.scheduler.Enter() {
		e := *s.ends.of(in)
		if e == nil {
			return
		}

		if open := s.ends.await(e); len(open) > 0 {
			c.Cancel(reason, "", open...)
		}
		if e.left == 0 {
			return
		}

		if e.none == nil {
			e.none = s.NewSignal()
		}
		s.scheduler.Await(shield, []*Task{e.none})
	}
}

// await starts to wait for the fresh tasks that are not done. It returns the tasks that are not cancelled.
func (w *endWaits) await(e *ends) (open []*Task) {
	for _, t := range e.fresh {
		if t.done {
			continue
		}
		if !t.cancelled {
			open = append(open, t)
		}

		if w.awaited == nil {
			w.awaited = map[*Task][]*ends{}
		}
		w.awaited[t] = append(w.awaited[t], e)
		e.left++
	}

	clear(e.fresh)
	e.fresh = e.fresh[:0]
	slices.SortFunc(open, byKind)
	return open
}

// count counts the end of a task in the ends that await it.
func (w *endWaits) count(t *Task) {
	for _, e := range w.awaited[t] {
		e.left--
		if e.left == 0 && e.none != nil {
			none := e.none
			e.none = nil
			w.set.settle(none, nil, nil)
		}
	}
	delete(w.awaited, t)
}
