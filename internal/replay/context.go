package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// Context is what an orchestration's code sees of its execution, within one scope. It must be used on the coroutines of the execution alone.
type Context struct {
	Info

	scope *scope
}

// in returns a context of the same execution in another scope.
func (c *Context) in(s *scope) *Context { return &Context{Info: c.Info, scope: s} }

// ActivityCall is an activity to be scheduled.
type ActivityCall struct {
	Name, Queue string
	Input       json.RawMessage
	// StartToClose limits an attempt, Heartbeat the time between its heartbeats, ScheduleToClose all attempts together; 0 is no limit.
	StartToClose, Heartbeat, ScheduleToClose time.Duration
	// Retry is how dispatch tries the activity again; nil is not at all.
	Retry *history.RetryPolicy
	// FairnessKey is whose the activity is, for the fairness of its queue; empty is nobody's.
	FairnessKey string
	// ExclusiveKey is what the activity needs for itself while it runs; empty is nothing. It then goes to the queue beside Queue that keeps
	// activities of one key apart.
	ExclusiveKey string
	// WaitForCancellation: when it is cancelled its task settles once it has really ended.
	WaitCancel bool
	// AtMostOnce: no attempt of it is begun twice.
	AtMostOnce bool
	// Inline: it is to run in the function that decides it.
	Inline bool
}

// ScheduleActivity decides to run an activity. Like every call that makes a task it decides nothing when the scope is cancelled: the task is
// cancelled from the start.
func (c *Context) ScheduleActivity(a ActivityCall) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(a.Name)
	}

	ev, added := c.x.decide(decision{kind: history.ActivityScheduled, name: a.Name, input: a.Input})
	if added {
		ev.Queue = a.Queue
		ev.FairnessKey = a.FairnessKey
		if a.ExclusiveKey != "" {
			ev.Queue, ev.ExclusiveKey = history.ExclusiveQueue(a.Queue), a.ExclusiveKey
		}
		ev.Input = inline(a.Input)
		ev.Retry = c.x.options.recorded(a.Retry)
		ev.StartToCloseMs = Milliseconds(a.StartToClose)
		ev.HeartbeatMs = Milliseconds(a.Heartbeat)
		ev.ScheduleToCloseMs = Milliseconds(a.ScheduleToClose)
		recordWait(ev, a.WaitCancel)
		ev.AtMostOnce = a.AtMostOnce
		ev.Inline = a.Inline
	}
	return c.newTask(ev)
}

// Milliseconds is a duration as history has it, rounded up: 0 stays no limit, and no limit becomes 0.
func Milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Millisecond) + 1 // which no duration overflows
}

// inline is a document as the payload of an event.
func inline(doc json.RawMessage) history.Payload {
	if doc == nil {
		return nil
	}
	return history.NewInlinePayload(doc)
}

// CreateTimer decides to wait until d from now, which must be more than 0. On replay a timer is due when history says so, whatever d is now.
func (c *Context) CreateTimer(d time.Duration) *Task { return CreateNamedTimer(c, d, "") }

// CreateNamedTimer is Context.CreateTimer with a name, which is for people: on replay that of history stays, whatever it is now.
func CreateNamedTimer(c *Context, d time.Duration, name string) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(name)
	}

	ev, added := c.x.decide(decision{kind: history.TimerCreated, label: name})
	if added {
		fireAt := c.Now().Add(d)
		ev.FireAt = &fireAt
		ev.Message = name
	}
	return c.newTask(ev)
}

// WaitForExternalEvent decides to take the next event of that name, which may have arrived already.
func (c *Context) WaitForExternalEvent(name string) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(name)
	}

	ev, _ := c.x.decide(decision{kind: history.ExternalEventSubscribed, name: name})
	t := &Task{x: c.x, id: ev.ID, kind: ev.Kind, name: name}
	c.scope.adopt(t)
	if err := c.x.tasks.events().subscribe(t); err != nil {
		c.x.scheduler.fail(err)
	}
	return t
}

// RaiseEvent decides to raise an external event in another instance, or in this one. The task settles when it has arrived there, or with why it
// has not. Its cancel gives up the answer, and does not call the event back.
func RaiseEvent(c *Context, instanceID, name string, data json.RawMessage) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(name)
	}

	ev, added := c.x.decide(decision{kind: history.ExternalEventSent, name: name, instanceID: instanceID, input: data})
	if added {
		ev.Data = inline(data)
	}
	t := c.newTask(ev)
	t.receiver = ev.InstanceID
	return t
}

// UpdateCall is an update that is sent to another instance.
type UpdateCall struct {
	InstanceID, Name string
	// ID is the id of the update; empty: one that derives from the execution and the event.
	ID   string
	Data json.RawMessage
	// Orchestration is what is started where there is no instance, of Version, with Input; empty: nothing.
	Orchestration, Version string
	Input                  json.RawMessage
}

// CallUpdate decides to send an update to another instance, or to this one. The task settles with its answer, or with why there is none. Its cancel gives up
// the answer, and does not call the update back.
func CallUpdate(c *Context, call UpdateCall) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(call.Name)
	}

	ev, added := c.x.decide(decision{kind: history.UpdateSent, name: call.Name, instanceID: call.InstanceID, input: call.Data})
	if added {
		ev.EventID = call.ID
		ev.Data = inline(call.Data)
		ev.Orchestration, ev.Version, ev.Input = call.Orchestration, call.Version, inline(call.Input)
	}
	t := c.newTask(ev)
	t.receiver = ev.InstanceID
	t.updateID = cmp.Or(ev.EventID, fmt.Sprintf("%s:%d", c.ExecutionID(), ev.ID))
	return t
}

// Settled returns a task that is over before it began: nothing is scheduled. f is nil for success.
func (c *Context) Settled(name string, f *history.Failure) *Task {
	c.x.scheduler.enter()
	return &Task{x: c.x, name: name, done: true, failure: f}
}

// Go starts a coroutine. It first runs when those that are ready by now have run. The task settles when code returns. Code that panics fails the
// orchestration.
func (c *Context) Go(code func()) *Task {
	c.x.scheduler.enter()

	t := &Task{x: c.x}
	c.x.scheduler.spawn(func() {
		c.x.protect(func() {
			code()
			if !t.done {
				c.x.tasks.settle(t, nil, nil)
			}
		})
	})
	return t
}

// newTask returns the task that an event schedules.
func (c *Context) newTask(ev *history.Event) *Task {
	t := &Task{x: c.x, id: ev.ID, kind: ev.Kind, name: ev.DisplayName(), fireAt: ev.FireAt}
	c.scope.adopt(t)
	if ev.WaitsForCancellation() { // as recorded: the code may have changed
		c.x.tasks.waitFor(t)
	}
	c.x.tasks.add(t)
	return t
}

// tooLate returns a task of a scope that is cancelled.
func (c *Context) tooLate(name string) *Task {
	return &Task{x: c.x, name: name, scope: c.scope, done: true, cancelled: true, failure: &c.scope.cancelled.Failure}
}

// Await waits until the task is done. It returns why the scope was cancelled, if it is, whatever the state of the task, which stays as it is.
func (c *Context) Await(t *Task) *Cancellation {
	c.x.scheduler.enter()
	c.x.own(t)

	if c.x.scheduler.awaitOne(c.scope, t) < 0 {
		return c.scope.cancelled
	}
	t.observe()
	return nil
}

// AwaitAll waits until all tasks are done, one after the other. It returns why the scope was cancelled, if it is before that. Then the code has
// observed none of them, so that what external events bring is not lost.
func (c *Context) AwaitAll(tasks []*Task) *Cancellation {
	c.x.scheduler.enter()
	c.x.own(tasks...)

	if !awaitAll(&c.x.scheduler, c.scope, tasks) {
		return c.scope.cancelled
	}
	for _, t := range tasks {
		t.observe()
	}
	return nil
}

// AwaitAny waits until one of the tasks is done and returns the index of the first that is; -1 when the scope is cancelled.
func (c *Context) AwaitAny(tasks []*Task) int {
	c.x.scheduler.enter()
	c.x.own(tasks...)

	i := c.x.scheduler.await(c.scope, tasks)
	if i >= 0 {
		tasks[i].observe()
	}
	return i
}

// AwaitWanted waits until one of the tasks that are done is wanted, which it returns; nil when all are done and none is, or when the scope is
// cancelled, with why. Tasks that are done by now are asked about in their order, others in that in which they settle.
func (c *Context) AwaitWanted(tasks []*Task, wanted func(*Task) bool) (*Task, *Cancellation) {
	c.x.scheduler.enter()
	c.x.own(tasks...)

	t := c.x.scheduler.awaitWanted(c.scope, tasks, wanted)
	if c.scope.cancelled != nil {
		return nil, c.scope.cancelled
	}
	return t, nil
}

// Cancel decides to cancel tasks: they settle with a failure of history.TypeCancelled and the reason, at once except those whose end is waited
// for.
func (c *Context) Cancel(reason, message string, tasks ...*Task) {
	c.x.scopes.cancelByCode(reason, message, tasks...)
}

// Refuse voids the turn because the code called something that cannot be named. It does not return.
func (c *Context) Refuse(what string) {
	c.x.scheduler.enter()
	c.x.scheduler.fail(&UnregisteredError{InstanceID: c.x.options.InstanceID, What: what})
}
