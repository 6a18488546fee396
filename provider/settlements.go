package provider

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// Settlements contains the events that an execution has settled from one segment on.
type Settlements struct {
	// IDs are the settled events, including events whose outcome is parked. Cancelled are the activities whose
	// cancellation was requested. The request settles those without WorkItem.WaitForCancellation. Both are unsorted.
	IDs, Cancelled []history.Range
	// Next is the first segment that does not exist yet.
	Next int64
	// Ended is true if the execution has ended, so that it has no open work. Deleted is true if its instance is
	// deleted.
	Ended, Deleted bool
}

// Apply adds the events that the next segment settles.
func (s *Settlements) Apply(segment *Segment) {
	state := history.NewState(history.TrackSettled, segment.Events...)
	ids, cancelled := state.Settled()
	s.IDs = append(s.IDs, ids...)
	s.Cancelled = append(s.Cancelled, cancelled...)

	s.Ended = s.Ended || state.Ended()
	s.Next = segment.Sequence + 1
}

// IDSet is a set of event IDs, as sorted ranges with gaps between them.
type IDSet []history.Range

// Has reports whether an ID is in the set.
func (s IDSet) Has(id int64) bool {
	i, _ := slices.BinarySearchFunc(s, id, func(r history.Range, id int64) int { return int(r.Last - id) })
	return i < len(s) && s[i].First <= id
}

// Add returns the set with a range of IDs added.
func (s IDSet) Add(r history.Range) IDSet {
	// from is the first range that r joins, or the first one after it.
	from, _ := slices.BinarySearchFunc(s, r.First-1, func(o history.Range, id int64) int { return int(o.Last - id) })
	to := from
	for to < len(s) && s[to].First <= r.Last+1 {
		r.First, r.Last = min(r.First, s[to].First), max(r.Last, s[to].Last)
		to++
	}

	return slices.Replace(s, from, to, r)
}
