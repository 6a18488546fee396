package tasks

import (
	"cmp"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// The reasons of the engine's own cancellations. They are part of the format of histories.
const (
	ReasonRequested       = "requested"
	ReasonTimeout         = "timeout"
	reasonParentCancelled = "parent_cancelled"
)

// Scopes cancel the tasks of an execution, one by one or with a scope.
type Scopes struct {
	set     *Set
	journal *journal.Journal
	root    Scope // of the body; its cancellation is the instance's cancellation
}

// Root returns the scope of the body.
func (c *Scopes) Root() *Scope { return &c.root }

// request is a request to cancel tasks.
type request struct {
	failure  *history.Failure // the outcome of the tasks
	children string           // the reason for children
	by       string           // history.RequestedBy…
}

// Cancel cancels tasks because the code requests it.
func (c *Scopes) Cancel(reason, message string, tasks ...*Task) {
	c.set.scheduler.Enter()

	f := &NewCancellation(reason, message).Failure
	how := request{failure: f, children: reason, by: history.RequestedByOrchestration}
	if err := c.cancelTasks(tasks, how); err != nil {
		c.set.scheduler.Fail(err)
	}
}

// End cancels a scope because the code requests it.
func (c *Scopes) End(s *Scope, reason string) {
	with := NewCancellation(reason, "")
	how := request{failure: &with.Failure, children: reason, by: history.RequestedByOrchestration}
	if err := c.cancelScope(s, with, how); err != nil {
		c.set.scheduler.Fail(err)
	}
}

// cancelTasks cancels tasks in the given order. They settle as cancelled, except tasks whose end is awaited.
// cancelTasks skips tasks that are done or cancelled, or whose outcome has arrived, except external events that the
// code has not observed. The history records only cancellations that matter outside of the execution. Adjacent tasks of
// one kind share an event, so that the losers of a large race do not make the history long.
func (c *Scopes) cancelTasks(tasks []*Task, how request) error {
	var group, events []*Task
	for _, t := range tasks {
		if t.kind == history.ExternalEventSubscribed {
			events = append(events, t)
			continue
		}
		if err := c.cancelEvents(events, how); err != nil {
			return err
		}
		events = events[:0]
		if t.done || t.cancelled || c.set.Arrivals.Has(t.id) {
			continue
		}

		c.set.cancel(t, how.failure)
		switch t.kind {
		case "":
			continue // a coroutine
		case history.ExternalEventSent, history.UpdateSent: // already sent, so only the response is ignored
			continue
		default:
		}

		if len(group) > 0 && !shareEvent(group[0], t) {
			if err := c.decideCancel(group, how); err != nil {
				return err
			}
			group = group[:0]
		}
		group = append(group, t)
	}
	if err := c.cancelEvents(events, how); err != nil {
		return err
	}
	return c.decideCancel(group, how)
}

// cancelEvents cancels waits for external events.
func (c *Scopes) cancelEvents(waits []*Task, how request) error {
	if len(waits) == 0 {
		return nil
	}
	return c.set.events.Cancel(waits, how.failure)
}

// shareEvent reports whether the cancellations of two tasks share an event. Each child has its own event.
func shareEvent(a, b *Task) bool {
	return a.kind == b.kind && a.kind != history.SubOrchestrationScheduled
}

// decideCancel records the decision to cancel a group of tasks.
func (c *Scopes) decideCancel(group []*Task, how request) error {
	if len(group) == 0 {
		return nil
	}

	d := cancelDecision(group, how)
	ev, added, err := c.journal.Decide(&d)
	if err != nil {
		return err
	}

	if d.Kind == history.TimerCancelled {
		for _, t := range group {
			c.set.forget(t) // if the timer still fires, its message is dropped
		}
		return nil
	}
	if added {
		ev.Message = how.failure.Message
		ev.RequestedBy = how.by
	}
	return nil
}

func cancelDecision(group []*Task, how request) (d journal.Decision) {
	switch group[0].kind {
	case history.ActivityScheduled:
		d = journal.Decision{Kind: history.ActivityCancelRequested, Reason: how.failure.Reason}
	case history.SubOrchestrationScheduled:
		d = journal.Decision{
			Kind: history.SubOrchestrationCancelRequested, Reason: how.children, InstanceID: group[0].child.instanceID,
		}
	default:
		d = journal.Decision{Kind: history.TimerCancelled, Reason: how.failure.Reason}
	}

	if len(group) == 1 {
		d.Source = group[0].id
		return d
	}
	for _, t := range group {
		d.Sources = history.AppendID(d.Sources, t.id)
	}
	return d
}

// cancelScope cancels a scope and the scopes below it. First the outstanding tasks settle. Then the coroutines that
// wait in the scopes wake, in the order of their starts.
func (c *Scopes) cancelScope(s *Scope, with *Cancellation, how request) error {
	var tasks, events []*Task
	var waiting []*Coroutine
	root := s == &c.root
	if root {
		tasks = c.set.scheduled(false)
		events = c.set.events.Waits()
		waiting = c.set.scheduler.All()
	}

	for _, e := range s.live(nil) {
		m := e.end(with)
		if m == nil || root {
			continue
		}
		tasks, events = m.outstanding(tasks, events)
		waiting = slices.AppendSeq(waiting, maps.Keys(m.waiting))
	}

	slices.SortFunc(tasks, byKind)
	slices.SortFunc(events, byID)
	err := c.cancelTasks(tasks, how)
	if e := c.cancelEvents(events, how); err == nil {
		err = e
	}

	if !root {
		slices.SortFunc(waiting, func(a, b *Coroutine) int { return cmp.Compare(a.Number(), b.Number()) })
	}
	for _, w := range waiting {
		if w.Wait.tasks != nil { // a coroutine that waits in another scope continues to wait
			c.set.scheduler.Wake(w)
		}
	}
	return err
}

// CancelRoot cancels the scope of the body because the cancellation of the instance was requested.
func (c *Scopes) CancelRoot(with *Cancellation) error {
	how := request{failure: &with.Failure, children: reasonParentCancelled, by: history.RequestedByEngine}
	return c.cancelScope(&c.root, with, how)
}

// EndRoot cancels the scope of a body that has not started.
func (c *Scopes) EndRoot(with *Cancellation) { c.root.end(with) }

// expire cancels a scope because its timer has fired. A timer that could not be set also cancels its scope, which would
// otherwise never end.
func (c *Scopes) expire(s *Scope, f *history.Failure) error {
	with := NewCancellation(ReasonTimeout, "")
	if f != nil {
		with.Message = "its timer could not be set: " + f.Message
	}
	how := request{failure: &with.Failure, children: ReasonTimeout, by: history.RequestedByEngine}
	return c.cancelScope(s, with, how)
}

// CancelAll cancels all outstanding tasks in all scopes before the end of the execution. It does not run code.
func (c *Scopes) CancelAll(end history.Kind) error {
	tasks := c.set.scheduled(true)
	if len(tasks) == 0 {
		return nil
	}

	slices.SortFunc(tasks, byKind)
	reason := history.TerminalReason(end)
	f := &history.Failure{Type: history.TypeCancelled, Reason: reason}
	return c.cancelTasks(tasks, request{failure: f, children: reason, by: history.RequestedByEngine})
}
