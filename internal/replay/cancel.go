package replay

import "github.com/perdure/perdure/history"

// cancel settles tasks as cancelled, in the order given. Those that are done already are left alone. Neighbours of one
// kind share an event, so that the losers of a wide race do not make history long.
func (x *execution) cancel(reason, message string, tasks ...*Task) {
	x.enter()
	f := &history.Failure{Type: history.TypeCancelled, Message: message, Reason: reason}
	var group []*Task
	for _, t := range tasks {
		if t.done {
			continue
		}
		if len(group) > 0 && group[0].kind != t.kind {
			x.decideCancel(group, f)
			group = group[:0]
		}
		group = append(group, t)
		t.cancelled = true
		x.settle(t, nil, f)
	}
	if len(group) > 0 {
		x.decideCancel(group, f)
	}
}

func (x *execution) decideCancel(group []*Task, f *history.Failure) {
	d := decision{kind: history.TimerCancelled, reason: f.Reason}
	activity := group[0].kind == history.ActivityScheduled
	if activity {
		d.kind = history.ActivityCancelRequested
	}
	if len(group) == 1 {
		d.source = group[0].id
	} else {
		d.sources = ranges(group)
	}
	ev, added := x.decide(d)
	switch {
	case !activity:
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
