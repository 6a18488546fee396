package replay

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/tasks"
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

// ScheduleSubOrchestration schedules a child and returns the task that waits for it.
func (c *Context) ScheduleSubOrchestration(s SubOrchestrationCall) *Task {
	c.x.scheduler.Enter()
	if c.scope.Cancellation() != nil {
		return c.x.tasks.NewCancelled(c.scope, s.Name)
	}

	ev := c.x.decideStart(history.SubOrchestrationScheduled, &s)
	return c.x.tasks.Schedule(c.scope, ev)
}

// StartDetached schedules an orchestration that the code does not wait for, and returns its instance ID.
func (c *Context) StartDetached(s SubOrchestrationCall) string {
	c.x.scheduler.Enter()

	ev := c.x.decideStart(history.DetachedOrchestrationScheduled, &s)
	c.x.tasks.ScheduleDetached(c.scope, ev)
	return ev.InstanceID
}

// decideStart records the decision to start another orchestration.
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
	ev.StartID = x.tasks.Options().StartID(ev.ID)
	ev.Input = inline(s.Input)
	if s.Delay > 0 {
		startAt := x.journal.Draft.Now().Add(s.Delay)
		ev.StartAt = &startAt
	}
	if kind == history.SubOrchestrationScheduled {
		ev.Attempt = 1
		ev.Retry = x.tasks.Options().RetryPolicy(s.Retry)
		tasks.RecordWait(ev, s.WaitCancel)
	}
	return ev
}
