package replay

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/history"
)

// Context is what an orchestration's code sees of its execution, within one scope. It is only good on the coroutines of the
// execution.
type Context struct {
	x     *execution
	scope *scope
}

// ActivityCall is an activity to be scheduled.
type ActivityCall struct {
	Name, Queue string
	Input       json.RawMessage
	// StartToClose limits an attempt, Heartbeat the time between its heartbeats, ScheduleToClose all attempts together; 0 is no limit.
	StartToClose, Heartbeat, ScheduleToClose time.Duration
	// Retry is how it is tried again, by whoever runs it; nil is not at all.
	Retry *history.RetryPolicy
	// WaitCancel: when it is cancelled its task settles once it has really ended.
	WaitCancel bool
}

// ScheduleActivity decides to run an activity. Like everything that makes a task it decides nothing when the scope is cancelled: the
// task is cancelled from the start.
func (c *Context) ScheduleActivity(a ActivityCall) *Task {
	c.x.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(a.Name)
	}
	ev, added := c.x.decide(decision{kind: history.ActivityScheduled, name: a.Name, input: a.Input})
	if added {
		ev.Queue, ev.Input, ev.Retry = a.Queue, inline(a.Input), c.x.recorded(a.Retry)
		ev.StartToCloseMs, ev.HeartbeatMs, ev.ScheduleToCloseMs = milliseconds(a.StartToClose), milliseconds(a.Heartbeat), milliseconds(a.ScheduleToClose)
		waits(ev, a.WaitCancel)
	}
	return c.newTask(ev)
}

// milliseconds rounds up: no limit becomes 0, none that is meant does.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// CreateTimer decides to wait until d from now, which must be more than 0. On replay a timer is due when history says so,
// whatever d is now.
func (c *Context) CreateTimer(d time.Duration) *Task {
	c.x.enter()
	if c.scope.cancelled != nil {
		return c.tooLate("")
	}
	ev, added := c.x.decide(decision{kind: history.TimerCreated})
	if added {
		fireAt := c.x.now.Add(d)
		ev.FireAt = &fireAt
	}
	return c.newTask(ev)
}

// Settled is a task that is over before it began: nothing is scheduled. f is nil for success.
func (c *Context) Settled(name string, f *history.Failure) *Task {
	c.x.enter()
	return &Task{x: c.x, name: name, done: true, failure: f}
}

// Go starts a coroutine. It first runs when those that are ready by now have run; the task settles when code returns. Code
// that panics fails the orchestration.
func (c *Context) Go(code func()) *Task {
	c.x.enter()
	t := &Task{x: c.x}
	c.x.spawn(func() {
		c.x.protect(func() {
			code()
			if !t.done {
				c.x.settle(t, nil, nil)
			}
		})
	})
	return t
}

// newTask is the task that an event schedules.
func (c *Context) newTask(ev *history.Event) *Task {
	t := &Task{x: c.x, id: ev.ID, kind: ev.Kind, name: ev.Name, fireAt: ev.FireAt}
	c.scope.adopt(t)
	if ev.Waits() { // as recorded: the code may have changed
		c.x.waitFor(t)
	}
	c.x.tasks[t.id] = t
	return t
}

// tooLate is a task of a scope that is over.
func (c *Context) tooLate(name string) *Task {
	return &Task{x: c.x, name: name, scope: c.scope, done: true, cancelled: true, failure: &c.scope.cancelled.Failure}
}

// Await waits until the task is done. It returns why the scope was cancelled, if it is, whatever the task is; the task is not
// touched then.
func (c *Context) Await(t *Task) *Cancellation {
	c.x.enter()
	c.own(t)
	c.x.current.single[0] = t
	if c.x.await(c.scope, c.x.current.single[:]) < 0 {
		return c.scope.cancelled
	}
	c.x.observe(t)
	return nil
}

// AwaitAll waits until all tasks are done, one after the other. It returns why the scope was cancelled, if it is before that: then the code
// was told of none of them, so that what external events bring is not lost.
func (c *Context) AwaitAll(tasks []*Task) *Cancellation {
	c.x.enter()
	c.own(tasks...)
	for i := range tasks {
		if c.x.await(c.scope, tasks[i:i+1]) < 0 {
			return c.scope.cancelled
		}
	}
	for _, t := range tasks {
		c.x.observe(t)
	}
	return nil
}

// AwaitAny waits until one of the tasks is done and returns the index of the first that is; -1 when the scope is cancelled.
func (c *Context) AwaitAny(tasks []*Task) int {
	c.x.enter()
	c.own(tasks...)
	i := c.x.await(c.scope, tasks)
	if i >= 0 {
		c.x.observe(tasks[i])
	}
	return i
}

// own refuses tasks of another instance: what they wait for is not in this history.
func (c *Context) own(tasks ...*Task) {
	for _, t := range tasks {
		if t.x != c.x {
			panic(fmt.Sprintf("replay: a future of instance %q is awaited in instance %q", t.x.options.InstanceID, c.x.options.InstanceID))
		}
	}
}

// Cancel decides to give up on tasks: they settle with a failure of history.TypeCancelled and the reason, at once but for those whose
// end is waited for.
func (c *Context) Cancel(reason, message string, tasks ...*Task) {
	c.x.cancel(reason, message, tasks...)
}

// Refuse voids the turn because the code called what cannot be named. It does not return.
func (c *Context) Refuse(what string) {
	c.x.enter()
	c.x.fail(&UnregisteredError{InstanceID: c.x.options.InstanceID, What: what})
}

// Now is the time of the turn, in UTC.
func (c *Context) Now() time.Time { return c.x.now }

// IsReplaying reports whether the code is only brought back to where it was; it is true as well while it is unwound.
func (c *Context) IsReplaying() bool { return c.x.replaying || c.x.mode.Load() != live }

// IsUnwinding reports whether the code is being dropped from memory: its deferred calls run, and nothing that they ask for is decided.
func (c *Context) IsUnwinding() bool {
	mode := c.x.mode.Load()
	return mode != live && mode != reliving
}

// IsInstanceCancelled reports whether somebody has cancelled the instance, whatever the scope is.
func (c *Context) IsInstanceCancelled() bool { return c.x.root.cancelled != nil }

// InstanceID is the instance's id.
func (c *Context) InstanceID() string { return c.x.options.InstanceID }

// ExecutionID is the execution's id.
func (c *Context) ExecutionID() string { return c.x.options.ExecutionID }

// Logger is silent while IsReplaying.
func (c *Context) Logger() *slog.Logger {
	if c.x.logger == nil {
		c.x.logger = c.x.newLogger()
	}
	return c.x.logger
}

// Rand gives the same numbers in each replay of an execution.
func (c *Context) Rand() *rand.Rand {
	if c.x.random == nil {
		c.x.random = newRand("rand", c.x.options.ExecutionID)
	}
	return c.x.random
}

// NewUUID gives the same ids in each replay of an execution.
func (c *Context) NewUUID() string {
	if c.x.uuids == nil {
		c.x.uuids = newRand("uuid", c.x.options.ExecutionID)
	}
	return newUUID(c.x.uuids)
}
