package provider

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// Settlements are what an execution has settled from one segment on.
type Settlements struct {
	// IDs are settled, or about to be: an outcome that is parked settles too. Cancelled are activities that somebody has asked to cancel,
	// which settles those whose end is not waited for (WorkItem.WaitCancel). In no order.
	IDs, Cancelled []history.Range
	// Next is the first segment that is not there yet.
	Next int64
	// Over: the execution has ended, so nothing of it is open. Deleted: and its instance is deleted.
	Over, Deleted bool
}

// Apply takes over what a segment says that comes next.
func (s *Settlements) Apply(segment *Segment) {
	for i := range segment.Events {
		e := &segment.Events[i]
		s.settle(e)
		for k := range e.Inputs { // parked: their turn is still to come
			s.settle(&e.Inputs[k])
		}
	}
	if n := len(segment.Events); n > 0 && segment.Events[n-1].Kind.Terminal() {
		s.Over = true
	}
	s.Next = segment.Sequence + 1
}

func (s *Settlements) settle(e *history.Event) {
	into := &s.IDs
	if e.Kind == history.ActivityCancelRequested {
		into = &s.Cancelled
	}
	if e.Kind.Sourced() && e.Kind != history.ActivityRetryScheduled && e.SourceEventID == 0 {
		*into = append(*into, e.SourceEventIDs...)
		return
	}
	for _, id := range e.Settles() {
		*into = history.AppendID(*into, id)
	}
}

// IDSet is a set of event ids, packed: runs of ids in order, with gaps between them.
type IDSet []history.Range

// Has reports whether an id is in the set.
func (s IDSet) Has(id int64) bool {
	i, _ := slices.BinarySearchFunc(s, id, func(r history.Range, id int64) int { return int(r.Last - id) })
	return i < len(s) && s[i].First <= id
}

// Add adds a run of ids.
func (s IDSet) Add(r history.Range) IDSet {
	from, _ := slices.BinarySearchFunc(s, r.First-1, func(o history.Range, id int64) int { return int(o.Last - id) }) // the first that it joins, or that is behind
	to := from
	for to < len(s) && s[to].First <= r.Last+1 {
		r.First, r.Last = min(r.First, s[to].First), max(r.Last, s[to].Last)
		to++
	}
	return slices.Replace(s, from, to, r)
}
