package replay

import "github.com/perdure/perdure/history"

// cancel settles tasks as cancelled, in the order given. Those that are done already are left alone, but for external
// events that nobody has looked at. Neighbours of one kind share an event, so that the losers of a wide race do not make history
// long. Only what others outside have heard of has one.
func (x *execution) cancel(reason, message string, tasks ...*Task) {
	x.enter()
	f := &history.Failure{Type: history.TypeCancelled, Message: message, Reason: reason}
	var group []*Task
	for _, t := range tasks {
		if t.kind == history.ExternalEventSubscribed {
			x.giveUp(t, f)
			continue
		}
		if t.done {
			continue
		}
		t.cancelled = true
		x.settle(t, nil, f)
		if t.kind == "" {
			continue // a coroutine
		}
		if len(group) > 0 && (group[0].kind != t.kind || t.kind == history.SubOrchestrationScheduled) { // each child is told by itself
			x.decideCancel(group, f)
			group = group[:0]
		}
		group = append(group, t)
	}
	if len(group) > 0 {
		x.decideCancel(group, f)
	}
}

func (x *execution) decideCancel(group []*Task, f *history.Failure) {
	d := decision{reason: f.Reason}
	switch group[0].kind {
	case history.ActivityScheduled:
		d.kind = history.ActivityCancelRequested
	case history.SubOrchestrationScheduled:
		d.kind, d.instanceID = history.SubOrchestrationCancelRequested, group[0].child.instanceID
	default:
		d.kind = history.TimerCancelled
	}
	if len(group) == 1 {
		d.source = group[0].id
	} else {
		d.sources = ranges(group)
	}
	ev, added := x.decide(d)
	switch {
	case d.kind == history.TimerCancelled:
		for _, t := range group {
			delete(x.tasks, t.id) // it fires no more; should it, that is dropped
		}
	case added:
		ev.Message, ev.RequestedBy = f.Message, history.RequestedByBody
	}
}

// ranges packs the ids of tasks, keeping their order.
func ranges(tasks []*Task) []history.Range {
	var rs []history.Range
	for _, t := range tasks {
		if n := len(rs); n > 0 && rs[n-1].Last+1 == t.id {
			rs[n-1].Last = t.id
		} else {
			rs = append(rs, history.Range{First: t.id, Last: t.id})
		}
	}
	return rs
}
