package replay

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// SubOrchestrationCall is an orchestration to be started as another instance.
type SubOrchestrationCall struct {
	// Version is empty for the highest.
	Name, Version string
	// InstanceID is empty for one that derives from the execution and the event that schedules it.
	InstanceID string
	Input      json.RawMessage
	// Retry is how a child that fails is tried again; nil is not at all.
	Retry *history.RetryPolicy
	// WaitCancel: when it is cancelled its task settles once it is over.
	WaitCancel bool
}

const (
	// MaxInstanceIDBytes is the limit of an instance id.
	MaxInstanceIDBytes = 1024
	// RetrySuffixBytes is what "~<attempt>" may take at the end of an instance id.
	RetrySuffixBytes = 16
)

// child is what a task remembers of the orchestration that it stands for. While it waits to be tried again, the task is the
// timer's.
type child struct {
	name, version string
	first         string          // the instance id of the first attempt
	instanceID    string          // of the last
	input         history.Payload // nil when it is not needed any more
	retry         *history.RetryPolicy
}

// ScheduleSubOrchestration decides to start a child and to wait for it.
func (c *Context) ScheduleSubOrchestration(s SubOrchestrationCall) *Task {
	c.x.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(s.Name)
	}
	ev := c.x.decideStart(history.SubOrchestrationScheduled, &s)
	t := c.newTask(ev)
	t.attempt = 1
	t.child = &child{name: ev.Name, version: ev.Version, first: ev.InstanceID, instanceID: ev.InstanceID, retry: ev.Retry} // as recorded: the code may have changed
	if ev.Retry != nil {
		t.child.input = ev.Input
	}
	return t
}

// StartDetached decides to start an orchestration that nobody waits for, and returns its instance id.
func (c *Context) StartDetached(s SubOrchestrationCall) string {
	c.x.enter()
	ev := c.x.decideStart(history.DetachedOrchestrationScheduled, &s)
	c.newTask(ev).done = true // all that can come is that it could not be sent (R9)
	return ev.InstanceID
}

func (x *execution) decideStart(kind history.Kind, s *SubOrchestrationCall) *history.Event {
	id := s.InstanceID
	if id == "" {
		id = x.childID(x.lastID + 1)
	}
	ev, added := x.decide(decision{kind: kind, name: s.Name, instanceID: id, input: s.Input})
	if added {
		ev.Version, ev.StartID, ev.Input = s.Version, x.startID(ev.ID), inline(s.Input)
		if kind == history.SubOrchestrationScheduled {
			ev.Attempt, ev.Retry = 1, x.recorded(s.Retry)
			waits(ev, s.WaitCancel)
		}
	}
	return ev
}

// childID is the instance id of a child that was given none: unlike any other's, since execution ids are, even if its parent's id is
// used again. Running instances compare it: it may never change.
func (x *execution) childID(eventID int64) string {
	own := fmt.Sprintf("%s:%d", x.options.ExecutionID, eventID)
	if id := x.options.InstanceID + ":" + own; len(id) <= MaxInstanceIDBytes-RetrySuffixBytes {
		return id
	}
	return own // children of children of children: each level makes ids longer
}

// startID makes a start that is sent again the same start (R10).
func (x *execution) startID(eventID int64) string {
	return fmt.Sprintf("%s:%d", x.options.ExecutionID, eventID)
}

// retry waits to start a child again, if its policy says so. The engine decides that, before the code hears of the failure, in
// events as the code's own would be: a timer, then the next attempt.
func (x *execution) retry(t *Task, f *history.Failure) (again bool, err error) {
	delay, again := NextRetry(t.child.retry, x.options.ExecutionID, t.id, int(t.attempt), f)
	if !again {
		return false, nil
	}
	ev, added, err := x.tryDecide(&decision{kind: history.TimerCreated})
	if err != nil {
		return false, err
	}
	if added {
		fireAt := x.now.Add(delay)
		ev.FireAt = &fireAt
	}
	x.become(t, ev)
	return true, nil
}

// restart starts a child again, as another instance: the id of the one that failed is taken.
func (x *execution) restart(t *Task) error {
	c, attempt := t.child, t.attempt+1
	id := fmt.Sprintf("%s~%d", c.first, attempt)
	ev, added, err := x.tryDecide(&decision{kind: history.SubOrchestrationScheduled, name: c.name, instanceID: id})
	if err != nil {
		return err
	}
	if added {
		ev.Version, ev.StartID, ev.Input, ev.Attempt, ev.Retry = c.version, x.startID(ev.ID), c.input, int(attempt), c.retry
		waits(ev, t.waits != waitsForNone)
	}
	t.attempt, c.instanceID = attempt, id
	x.become(t, ev)
	return nil
}

// become makes a task stand for another event.
func (x *execution) become(t *Task, ev *history.Event) {
	t.id, t.kind, t.fireAt = ev.ID, ev.Kind, ev.FireAt
	x.tasks[t.id] = t
}
