package tasks

import (
	"slices"

	"github.com/perdure/perdure/internal/replay/coroutine"
)

// wait is the state of a coroutine that waits for tasks.
type wait struct {
	tasks    []*Task  // the coroutine waits for one of these
	together []*Task  // the coroutine waits for all of these, one after the other
	settled  *[]*Task // if not nil, tasks are added when they settle
	single   [1]*Task // the backing array of tasks for one task
}

// Coroutine is a coroutine that can wait for tasks.
type Coroutine = coroutine.Coroutine[wait]

// Scheduler runs coroutines that wait for tasks.
type Scheduler struct {
	coroutine.Scheduler[wait]
}

// AwaitOne is like Await for one task. It does not allocate.
func (s *Scheduler) AwaitOne(in *Scope, t *Task) int {
	w := &s.Current().Wait
	w.single[0] = t
	return s.Await(in, w.single[:])
}

// Await parks the running coroutine until one of the tasks is done, and returns the index of the first such task. It
// returns -1 if the scope is cancelled, even if tasks are done.
func (s *Scheduler) Await(in *Scope, tasks []*Task) int {
	if in.cancelled != nil {
		return -1
	}
	i := firstDone(tasks)
	if i >= 0 {
		return i
	}

	c := s.Current()
	addWaits(c, in, tasks)
	for i < 0 && in.cancelled == nil {
		s.Park()
		i = firstDone(tasks)
	}
	removeWaits(c, in, tasks)

	if in.cancelled != nil {
		return -1
	}
	return i
}

// AwaitAll awaits tasks one after the other. It returns false if the scope is cancelled before all are done.
func (s *Scheduler) AwaitAll(in *Scope, tasks []*Task) bool {
	c := s.Current()
	c.Wait.together = tasks
	defer func() { c.Wait.together = nil }()
	for i := range tasks {
		if s.Await(in, tasks[i:i+1]) < 0 {
			return false
		}
	}
	return true
}

// AwaitWanted parks the running coroutine until a task is done for which wanted returns true, and returns this task. It
// returns nil if all tasks are done without such a task, or if the scope is cancelled. It calls wanted once for each
// task. A task that was passed to wanted counts as observed.
func (s *Scheduler) AwaitWanted(in *Scope, tasks []*Task, wanted func(*Task) bool) *Task {
	var open, settled []*Task
	for _, t := range tasks {
		if t.done {
			settled = append(settled, t)
		} else {
			open = append(open, t)
		}
	}

	c := s.Current()
	c.Wait.settled = &settled
	addWaits(c, in, open)
	defer func() { c.Wait.settled = nil }()
	defer removeWaits(c, in, open)
	for checked := 0; in.cancelled == nil; s.Park() {
		for ; checked < len(settled); checked++ {
			settled[checked].Observe()
			if wanted(settled[checked]) {
				return settled[checked]
			}
		}
		if checked == len(tasks) {
			return nil
		}
	}
	return nil
}

// addWaits makes a coroutine wake when one of the tasks settles, and when the scope is cancelled.
func addWaits(c *Coroutine, in *Scope, tasks []*Task) {
	c.Wait.tasks = tasks
	in.addWaiter(c)
	for _, t := range tasks {
		if t.waiters == nil {
			t.waiters = t.one[:0]
		}
		t.waiters = append(t.waiters, c)
	}
}

// removeWaits reverts addWaits. Otherwise, a task that is raced repeatedly would accumulate waiters.
func removeWaits(c *Coroutine, in *Scope, tasks []*Task) {
	for _, t := range tasks {
		if !t.done {
			t.waiters = slices.DeleteFunc(t.waiters, func(w *Coroutine) bool { return w == c })
		}
	}
	c.Wait.tasks = nil
	in.removeWaiter(c)
}

func firstDone(tasks []*Task) int {
	return slices.IndexFunc(tasks, (*Task).IsDone)
}

// Awaited returns the tasks that coroutines wait for.
func (s *Scheduler) Awaited() (tasks []*Task) {
	for _, c := range s.All() {
		tasks = append(tasks, c.Wait.tasks...)
	}
	return tasks
}

// WouldWake reports whether a coroutine would continue if the tasks for which done returns true were done.
func (s *Scheduler) WouldWake(done func(*Task) bool) bool {
	return slices.ContainsFunc(s.All(), func(c *Coroutine) bool { return !c.Ended() && c.Wait.wouldEnd(done) })
}

func (w *wait) wouldEnd(done func(*Task) bool) bool {
	return slices.ContainsFunc(w.tasks, done) &&
		!slices.ContainsFunc(w.together, func(t *Task) bool { return !done(t) })
}
