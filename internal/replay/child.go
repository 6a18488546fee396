package replay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// SubOrchestrationCall describes an orchestration to start as another instance.
type SubOrchestrationCall struct {
	// Version is empty for the highest version.
	Name, Version string
	// InstanceID may be empty. The ID is then derived from the execution and the event that schedules the
	// orchestration.
	InstanceID string
	Input      json.RawMessage
	// Delay is the time between the turn and the start of the orchestration. 0 starts it immediately.
	Delay time.Duration
	// Retry is the retry policy of a failed child. Nil means no retries.
	Retry *history.RetryPolicy
	// WaitCancel makes the task of a cancelled child settle only after the child has ended.
	WaitCancel bool
}

// child is what a task remembers of the orchestration that it stands for. While it waits to be tried again, the task stands for the timer.
type child struct {
	name, version string
	first         string          // the instance id of the first attempt
	instanceID    string          // of the last
	input         history.Payload // nil when it is not needed any more
	retry         *history.RetryPolicy
}

// ScheduleSubOrchestration schedules a child and returns the task that waits for it.
func (c *Context) ScheduleSubOrchestration(s SubOrchestrationCall) *Task {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(s.Name)
	}

	ev := c.x.decideStart(history.SubOrchestrationScheduled, &s)
	t := c.newTask(ev)
	t.setAttempt(1)
	t.child = newChild(ev)
	return t
}

// newChild is the child that an event schedules, as recorded: the code may have changed.
func newChild(ev *history.Event) *child {
	c := &child{name: ev.Name, version: ev.Version, first: ev.InstanceID, instanceID: ev.InstanceID, retry: ev.Retry}
	if ev.Retry != nil {
		c.input = ev.Input
	}
	return c
}

// StartDetached schedules an orchestration that the code does not wait for, and returns its instance ID.
func (c *Context) StartDetached(s SubOrchestrationCall) string {
	c.x.scheduler.enter()

	ev := c.x.decideStart(history.DetachedOrchestrationScheduled, &s)
	c.newTask(ev).markDone() // all that can come is that it could not be sent (R9)
	return ev.InstanceID
}

// decideStart decides to start another orchestration.
func (x *execution) decideStart(kind history.Kind, s *SubOrchestrationCall) *history.Event {
	id := s.InstanceID
	if id == "" {
		id = x.identity.ChildID(kind, x.journal.Cursor.LastID()+1, x.journal.Cursor.Next())
	}

	ev, added := x.decide(journal.Decision{Kind: kind, Name: s.Name, InstanceID: id, Input: s.Input})
	if !added {
		return ev
	}
	ev.Version = s.Version
	ev.StartID = x.options.startID(ev.ID)
	ev.Input = inline(s.Input)
	if s.Delay > 0 {
		startAt := x.journal.Draft.Now().Add(s.Delay)
		ev.StartAt = &startAt
	}
	if kind == history.SubOrchestrationScheduled {
		ev.Attempt = 1
		ev.Retry = x.options.recorded(s.Retry)
		recordWait(ev, s.WaitCancel)
	}
	return ev
}

// startID makes a start that is sent again the same start (R10).
func (o *Options) startID(eventID int64) string {
	return fmt.Sprintf("%s:%d", o.ExecutionID, eventID)
}

// retry decides to start a child again later, if its policy says so, before the code learns of the failure. The engine records that as code
// would: a timer, then the next attempt.
func (x *execution) retry(t *Task, f *history.Failure) (again bool, err error) {
	delay, again := NextRetry(t.child.retry, x.options.ExecutionID, t.id, int(t.attempt), f)
	if !again {
		return false, nil
	}

	ev, added, err := x.journal.Decide(&journal.Decision{Kind: history.TimerCreated})
	if err != nil {
		return false, err
	}
	if added {
		fireAt := x.journal.Draft.Now().Add(delay)
		ev.FireAt = &fireAt
	}

	x.tasks.become(t, ev)
	return true, nil
}

// restart starts a child again. It is another instance, since the id of the one that failed is taken.
func (x *execution) restart(t *Task) error {
	c := t.child
	attempt := t.attempt + 1
	id := fmt.Sprintf("%s~%d", c.first, attempt)

	ev, added, err := x.journal.Decide(&journal.Decision{Kind: history.SubOrchestrationScheduled, Name: c.name, InstanceID: id})
	if err != nil {
		return err
	}
	if added {
		ev.Version = c.version
		ev.StartID = x.options.startID(ev.ID)
		ev.Input = c.input
		ev.Attempt = int(attempt)
		ev.Retry = c.retry
		recordWait(ev, t.waits != waitsForNone)
	}

	c.instanceID = id
	t.setAttempt(attempt)
	x.tasks.become(t, ev)
	return nil
}
