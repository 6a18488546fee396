package replay

import (
	"fmt"

	"github.com/perdure/perdure/internal/replay/tasks"
)

// Await waits until the task is done. If the scope is cancelled, Await returns its cancellation, even if the task is
// done, and leaves the task unchanged.
func (c *Context) Await(t *Task) *Cancellation {
	c.x.scheduler.Enter()
	c.x.checkOwner(t)

	if c.x.scheduler.AwaitOne(c.scope, t) < 0 {
		return c.scope.Cancellation()
	}
	t.Observe()
	return nil
}

// AwaitAll waits until all tasks are done, one after the other. If the scope is cancelled first, AwaitAll returns its
// cancellation. The code has then observed none of the tasks, so that the data of external events is not lost.
func (c *Context) AwaitAll(tasks []*Task) *Cancellation {
	c.x.scheduler.Enter()
	c.x.checkOwner(tasks...)

	if !c.x.scheduler.AwaitAll(c.scope, tasks) {
		return c.scope.Cancellation()
	}
	for _, t := range tasks {
		t.Observe()
	}
	return nil
}

// AwaitAny waits until one of the tasks is done and returns the index of the first such task. It returns -1 if the
// scope is cancelled.
func (c *Context) AwaitAny(tasks []*Task) int {
	c.x.scheduler.Enter()
	c.x.checkOwner(tasks...)

	i := c.x.scheduler.Await(c.scope, tasks)
	if i >= 0 {
		tasks[i].Observe()
	}
	return i
}

// AwaitWanted waits for the first task that is done and for which wanted returns true, and returns this task. It
// returns nil if all tasks are done and wanted returned true for none. If the scope is cancelled, it returns nil and
// the cancellation. It calls wanted for the tasks that are done now in their order, and for the others in the order in
// which they settle.
func (c *Context) AwaitWanted(tasks []*Task, wanted func(*Task) bool) (*Task, *Cancellation) {
	c.x.scheduler.Enter()
	c.x.checkOwner(tasks...)

	t := c.x.scheduler.AwaitWanted(c.scope, tasks, wanted)
	if cancelled := c.scope.Cancellation(); cancelled != nil {
		return nil, cancelled
	}
	return t, nil
}

// checkOwner panics if a task belongs to another instance, because its outcome is not in this history.
func (x *execution) checkOwner(awaited ...*Task) {
	for _, t := range awaited {
		if !x.tasks.Owns(t) {
			panic(fmt.Sprintf("replay: a future of instance %q is awaited in instance %q",
				tasks.InstanceIDOf(t), x.options.InstanceID))
		}
	}
}
