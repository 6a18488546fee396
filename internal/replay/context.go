package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/retry"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// Context is the view of an execution that its code has within one scope. Use it only on coroutines of the execution.
type Context struct {
	Unscoped

	scope *tasks.Scope
}

// in returns a context of the same execution in another scope.
func (c *Context) in(s *tasks.Scope) *Context { return &Context{Unscoped: c.Unscoped, scope: s} }

// ActivityCall describes an activity to schedule.
type ActivityCall struct {
	Name, Queue string
	Input       json.RawMessage
	// StartToClose limits one attempt, Heartbeat the time between two heartbeats of an attempt, and ScheduleToClose all
	// attempts together. 0 means no limit.
	StartToClose, Heartbeat, ScheduleToClose time.Duration
	// Retry is the retry policy of the activity. Nil means no retries.
	Retry *history.RetryPolicy
	// FairnessKey assigns the activity to a tenant for SQS fair queues. It is empty for no tenant.
	FairnessKey string
	// ExclusiveKey limits the activities with this key to one running attempt at a time. It sends the activity to the
	// FIFO queue that belongs to Queue. Empty means no limit.
	ExclusiveKey string
	// WaitCancel makes the task of a cancelled activity settle only after the activity has ended.
	WaitCancel bool
	// AtMostOnce prevents an attempt of the activity from starting twice.
	AtMostOnce bool
	// Inline runs the activity in the function that schedules it.
	Inline bool
}

// ScheduleActivity schedules an activity. Like every method that creates a task, it schedules nothing if the scope is
// cancelled, and returns a task that is cancelled already.
func (c *Context) ScheduleActivity(a ActivityCall) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, a.Name)
	}

	ev, added := c.x.decide(journal.Decision{Kind: history.ActivityScheduled, Name: a.Name, Input: a.Input})
	if added {
		ev.Queue = a.Queue
		ev.FairnessKey = a.FairnessKey
		if a.ExclusiveKey != "" {
			ev.Queue, ev.ExclusiveKey = history.ExclusiveQueue(a.Queue), a.ExclusiveKey
		}
		ev.Input = inline(a.Input)
		ev.Retry = c.x.tasks.Options().RetryPolicy(a.Retry)
		ev.StartToCloseMs = retry.Milliseconds(a.StartToClose)
		ev.HeartbeatMs = retry.Milliseconds(a.Heartbeat)
		ev.ScheduleToCloseMs = retry.Milliseconds(a.ScheduleToClose)
		tasks.RecordWait(ev, a.WaitCancel)
		ev.AtMostOnce = a.AtMostOnce
		ev.Inline = a.Inline
	}
	return c.x.tasks.Schedule(c.scope, ev)
}

// inline returns a document as the payload of an event.
func inline(doc json.RawMessage) history.Payload {
	if doc == nil {
		return nil
	}
	return history.NewInlinePayload(doc)
}

// CreateTimer creates a timer that is due after d, which must be positive. name is for display and may be empty. On
// replay, the recorded due time and name apply.
func (c *Context) CreateTimer(d time.Duration, name string) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, name)
	}

	ev, added := c.x.decide(journal.Decision{Kind: history.TimerCreated, Label: name})
	if added {
		fireAt := c.Now().Add(d)
		ev.FireAt = &fireAt
		ev.Message = name
	}
	return c.x.tasks.Schedule(c.scope, ev)
}

// WaitForExternalEvent subscribes to the next external event with a name. The event may have arrived already.
func (c *Context) WaitForExternalEvent(name string) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, name)
	}

	ev, _ := c.x.decide(journal.Decision{Kind: history.ExternalEventSubscribed, Name: name})
	t := c.x.tasks.Subscribe(c.scope, ev)
	if err := c.x.mailbox().Subscribe(t); err != nil {
		c.x.scheduler.Fail(err)
	}
	return t
}

// RaiseEvent raises an external event in another instance, or in this one. The task settles when the event has arrived
// there, or fails with the reason why it has not. A cancellation of the task does not prevent the send.
func (c *Context) RaiseEvent(instanceID, name string, data json.RawMessage) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, name)
	}

	ev, added := c.x.decide(journal.Decision{
		Kind: history.ExternalEventSent, Name: name, InstanceID: instanceID, Input: data,
	})
	if added {
		ev.Data = inline(data)
	}
	return c.x.tasks.Schedule(c.scope, ev)
}

// UpdateCall describes an update that is sent to another instance.
type UpdateCall struct {
	InstanceID, Name string
	// ID is the ID of the update. If it is empty, the ID is derived from the execution and the event.
	ID   string
	Data json.RawMessage
	// Orchestration, Version and Input describe the orchestration to start if the instance does not exist. If
	// Orchestration is empty, no orchestration is started.
	Orchestration, Version string
	Input                  json.RawMessage
}

// CallUpdate sends an update to another instance, or to this one. The task settles with the response, or fails with the
// reason why there is none. A cancellation of the task does not prevent the send.
func (c *Context) CallUpdate(call UpdateCall) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, call.Name)
	}

	ev, added := c.x.decide(journal.Decision{
		Kind: history.UpdateSent, Name: call.Name, InstanceID: call.InstanceID, Input: call.Data,
	})
	if added {
		ev.EventID = call.ID
		ev.Data = inline(call.Data)
		ev.Orchestration, ev.Version, ev.Input = call.Orchestration, call.Version, inline(call.Input)
	}
	t := c.x.tasks.Schedule(c.scope, ev)
	t.SetUpdateID(cmp.Or(ev.EventID, fmt.Sprintf("%s:%d", c.ExecutionID(), ev.ID)))
	return t
}
