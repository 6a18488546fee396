package provider

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// Settlements are what an execution has settled from one segment on.
type Settlements struct {
	// IDs are settled, or about to be: a parked outcome settles its activity too. Cancelled are activities whose cancel
	// was requested, which settles those whose end is not waited for (WorkItem.WaitCancel). They are in no order.
	IDs, Cancelled []history.Range
	// Next is the first segment that does not exist yet.
	Next int64
	// Over reports that the execution has ended, so nothing of it is open. Deleted reports that its instance is deleted
	// as well.
	Over, Deleted bool
}

// Apply adds what the next segment settles.
func (s *Settlements) Apply(segment *Segment) {
	state := history.NewState(history.KeepSettled, segment.Events...)
	ids, cancelled := state.Settled()
	s.IDs = append(s.IDs, ids...)
	s.Cancelled = append(s.Cancelled, cancelled...)

	s.Over = s.Over || state.Over()
	s.Next = segment.Sequence + 1
}

// IDSet is a set of event ids, packed: ranges of ids in order, with gaps between them.
type IDSet []history.Range

// Has reports whether an id is in the set.
func (s IDSet) Has(id int64) bool {
	i, _ := slices.BinarySearchFunc(s, id, func(r history.Range, id int64) int { return int(r.Last - id) })
	return i < len(s) && s[i].First <= id
}

// Add adds a range of ids.
func (s IDSet) Add(r history.Range) IDSet {
	// from is the first range that r joins, or the first behind it.
	from, _ := slices.BinarySearchFunc(s, r.First-1, func(o history.Range, id int64) int { return int(o.Last - id) })
	to := from
	for to < len(s) && s[to].First <= r.Last+1 {
		r.First, r.Last = min(r.First, s[to].First), max(r.Last, s[to].Last)
		to++
	}

	return slices.Replace(s, from, to, r)
}
