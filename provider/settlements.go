package provider

import "github.com/perdure/perdure/history"

// Settlements contains the events that an execution has settled in a segment or later.
type Settlements struct {
	// IDs are the settled events, including events whose outcome is parked. Cancelled are the activities whose
	// cancellation was requested. The request settles activities without WorkItem.WaitForCancellation. Both slices are
	// unsorted.
	IDs, Cancelled []history.Range
	// Next is the first segment that does not exist yet.
	Next int64
	// Ended is true if the execution has ended and has no open work. Deleted is true if its instance is deleted.
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
