package replay

import (
	"cmp"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// scopes cancel what an execution has outstanding, one by one or with a scope.
type scopes struct {
	journal *journal.Journal
	tasks   *tasks
	root    scope // of the body; its cancel is that of the instance
}

// cancel is how tasks are cancelled.
type cancel struct {
	failure  *history.Failure // what they settle with
	children string           // the reason that children are cancelled with
	by       string           // history.RequestedBy…
}

// cancelByCode cancels tasks because the code asks for it.
func (c *scopes) cancelByCode(reason, message string, tasks ...*Task) {
	c.tasks.scheduler.enter()

	f := &history.Failure{Type: history.TypeCancelled, Message: history.TruncateCancelMessage(message), Reason: reason}
	if err := c.cancelTasks(tasks, cancel{failure: f, children: reason, by: history.RequestedByOrchestration}); err != nil {
		c.tasks.scheduler.fail(err)
	}
}

// cancelTasks cancels tasks in the order given: they settle as cancelled, except those whose end is waited for. Tasks that are done or cancelled
// already, or whose outcome has arrived, are left alone, except external events that the code has not observed. Only what others outside know of has an event in history.
// Neighbours of one kind share one, so that the losers of a wide race do not make history long.
func (c *scopes) cancelTasks(tasks []*Task, how cancel) error {
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
		if t.done || t.cancelled || c.tasks.arrivals.has(t.id) {
			continue
		}

		c.tasks.cancel(t, how.failure)
		switch t.kind {
		case "":
			continue // a coroutine
		case history.ExternalEventSent, history.UpdateSent: // it is on its way, and only the answer is given up
			continue
		default:
		}

		if len(group) > 0 && !together(group[0], t) {
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

// cancelEvents cancels waits for external events, which have no event in history.
func (c *scopes) cancelEvents(waits []*Task, how cancel) error {
	if len(waits) == 0 {
		return nil
	}
	return c.tasks.mail.cancel(waits, how.failure)
}

// together reports whether tasks share an event. Each child has one of its own.
func together(a, b *Task) bool {
	return a.kind == b.kind && a.kind != history.SubOrchestrationScheduled
}

// decideCancel takes the decision to cancel a group of tasks.
func (c *scopes) decideCancel(group []*Task, how cancel) error {
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
			c.tasks.forget(t) // a timer that fires nevertheless is dropped
		}
		return nil
	}
	if added {
		ev.Message = how.failure.Message
		ev.RequestedBy = how.by
	}
	return nil
}

// cancelDecision is the decision to cancel a group of tasks.
func cancelDecision(group []*Task, how cancel) (d journal.Decision) {
	switch group[0].kind {
	case history.ActivityScheduled:
		d = journal.Decision{Kind: history.ActivityCancelRequested, Reason: how.failure.Reason}
	case history.SubOrchestrationScheduled:
		d = journal.Decision{Kind: history.SubOrchestrationCancelRequested, Reason: how.children, InstanceID: group[0].child.instanceID}
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

// cancelScope cancels a scope and those under it. What is outstanding in them settles first; then the coroutines that wait through them are
// woken, in the order in which they were started.
func (c *scopes) cancelScope(s *scope, with *Cancellation, how cancel) error {
	var tasks, events []*Task
	var waiting []*coroutine
	root := s == &c.root
	if root {
		tasks = c.tasks.scheduled(false)
		events = c.tasks.mail.waits()
		waiting = c.tasks.scheduler.coroutines
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
		slices.SortFunc(waiting, func(a, b *coroutine) int { return cmp.Compare(a.number, b.number) })
	}
	for _, w := range waiting {
		if w.awaits != nil { // a coroutine that waits through another scope goes on to wait
			c.tasks.scheduler.wake(w)
		}
	}
	return err
}

// cancelRoot cancels the scope of the body because the instance's cancel was requested.
func (c *scopes) cancelRoot(with *Cancellation) error {
	return c.cancelScope(&c.root, with, cancel{failure: &with.Failure, children: reasonParentCancelled, by: history.RequestedByEngine})
}

// expire cancels a scope because its timer has fired. One that could not be set cancels its scope as well, which would never end by itself.
func (c *scopes) expire(s *scope, f *history.Failure) error {
	with := newCancellation(reasonTimeout, "")
	if f != nil {
		with.Message = "its timer could not be set: " + f.Message
	}
	return c.cancelScope(s, with, cancel{failure: &with.Failure, children: reasonTimeout, by: history.RequestedByEngine})
}

// release cancels all that is outstanding, in whatever scope, before the end of the execution. No code learns of it.
func (c *scopes) release(end history.Kind) error {
	tasks := c.tasks.scheduled(true)
	if len(tasks) == 0 {
		return nil
	}

	slices.SortFunc(tasks, byKind)
	reason := history.TerminalReason(end)
	f := &history.Failure{Type: history.TypeCancelled, Reason: reason}
	return c.cancelTasks(tasks, cancel{failure: f, children: reason, by: history.RequestedByEngine})
}
