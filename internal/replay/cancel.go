package replay

import (
	"cmp"

	"github.com/perdure/perdure/history"
)

// cancel is how tasks are given up.
type cancel struct {
	f        *history.Failure // what they settle with
	children string           // the reason that children are told
	by       string           // who decided so
}

// cancel gives tasks up, in the order given: they settle as cancelled, but for those whose end is waited for. Those that are done, or cancelled, already are left alone, but for external
// events that nobody has looked at. Neighbours of one kind share an event, so that the losers of a wide race do not make history
// long. Only what others outside have heard of has one.
func (x *execution) cancel(reason, message string, tasks ...*Task) {
	x.enter()
	f := &history.Failure{Type: history.TypeCancelled, Message: history.CutCancelMessage(message), Reason: reason}
	if err := x.giveUpAll(tasks, cancel{f: f, children: reason, by: history.RequestedByBody}); err != nil {
		x.fail(err)
	}
}

// giveUpAll is cancel, whoever decides it.
func (x *execution) giveUpAll(tasks []*Task, how cancel) error {
	var group []*Task
	for _, t := range tasks {
		if t.kind == history.ExternalEventSubscribed {
			x.giveUpEvents([]*Task{t}, how.f)
			continue
		}
		if t.done || t.cancelled {
			continue
		}
		x.giveUp(t, how.f)
		if t.kind == "" {
			continue // a coroutine
		}
		if len(group) > 0 && !together(group[0], t) {
			if err := x.decideCancel(group, how); err != nil {
				return err
			}
			group = group[:0]
		}
		group = append(group, t)
	}
	return x.decideCancel(group, how)
}

// together reports whether tasks share an event. Each child is told by itself.
func together(a, b *Task) bool {
	return a.kind == b.kind && a.kind != history.SubOrchestrationScheduled
}

func (x *execution) decideCancel(group []*Task, how cancel) error {
	if len(group) == 0 {
		return nil
	}
	d := decision{reason: how.f.Reason}
	switch group[0].kind {
	case history.ActivityScheduled:
		d.kind = history.ActivityCancelRequested
	case history.SubOrchestrationScheduled:
		d.kind, d.reason, d.instanceID = history.SubOrchestrationCancelRequested, how.children, group[0].child.instanceID
	default:
		d.kind = history.TimerCancelled
	}
	if len(group) == 1 {
		d.source = group[0].id
	} else {
		d.sources = ranges(group)
	}
	ev, added, err := x.tryDecide(&d)
	switch {
	case err != nil:
		return err
	case d.kind == history.TimerCancelled:
		for _, t := range group {
			delete(x.tasks, t.id) // it fires no more; should it, that is dropped
		}
	case added:
		ev.Message, ev.RequestedBy = how.f.Message, how.by
	}
	return nil
}

// ranges packs the ids of tasks, keeping their order.
func ranges(tasks []*Task) []history.Range {
	var rs []history.Range
	for _, t := range tasks {
		rs = history.AppendID(rs, t.id)
	}
	return rs
}

// cancelInstance ends the root scope, because somebody outside asked for it. An orchestration whose delayed start is still to come
// has nothing to unwind: it ends, and its code never runs. One that the same turn terminates ends so.
func (x *execution) cancelInstance(ev *history.Event) error {
	c := newCancellation(cmp.Or(ev.Reason, reasonRequested), ev.Message)
	if x.doomed {
		x.root.cancelled = c
		return nil
	}
	if !x.started {
		x.root.cancelled = c
		return x.conclude(Ending{Kind: history.OrchestrationCancelled})
	}
	return x.cancelScope(&x.root, c, cancel{f: &c.Failure, children: reasonParentCancelled, by: history.RequestedByEngine})
}

// cancelTask gives up an activity as somebody outside wants it.
func (x *execution) cancelTask(t *Task, ev *history.Event) {
	x.giveUp(t, &history.Failure{Type: history.TypeCancelled, Message: history.CutCancelMessage(ev.Message), Reason: cmp.Or(ev.Reason, reasonRequested)})
}

// expire takes into account that the timer of a scope has fired. One that could not be set ends its scope as well: it would
// never end by itself.
func (x *execution) expire(s *scope, f *history.Failure) error {
	c := newCancellation(reasonTimeout, "")
	if f != nil {
		c.Message = "its timer could not be set: " + f.Message
	}
	return x.cancelScope(s, c, cancel{f: &c.Failure, children: reasonTimeout, by: history.RequestedByEngine})
}
