package segments

import (
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ReadTail yields the events of an execution after a position, and advances the position. If the segment of the
// position is not known, ReadTail searches it, and its reads are strongly consistent. Otherwise it reads only new
// segments, with eventual consistency: a read that finds none is half a read unit.
func (st *Store) ReadTail(
	ctx context.Context, instanceID, executionID string, at *provider.Tail,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		st.readAfter(ctx, instanceID, executionID, at, 1, yield)
	}
}

// searchFrom is the position from which ReadHistory searches the segment. The search has more requests than a read of
// so few events.
const searchFrom = 500

// ReadHistory reads the events of an execution page by page, with strong consistency. It holds at most one page and one
// segment in memory. It reads a document when it reaches the reference to it.
func (st *Store) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		st.readAfter(ctx, instanceID, executionID, &provider.Tail{Event: after}, searchFrom, yield)
	}
}

// readAfter yields the events after a position, and advances the position. If the segment of the position is not known,
// it searches the segment from event searchedFrom on, and reads from the first segment for earlier positions.
func (st *Store) readAfter(
	ctx context.Context, instanceID, executionID string, at *provider.Tail, searchedFrom int64,
	yield func(history.Event, error) bool,
) {
	s := stream{
		store: st, instanceID: instanceID, executionID: executionID, next: at.Segment, consistency: provider.Eventual,
	}
	var err error
	if s.next == 0 {
		s.consistency = provider.Strong
		if at.Event >= searchedFrom {
			var last provider.Segment
			last, s.next, err = st.segmentOf(ctx, instanceID, executionID, at.Event)
			if len(last.Events) > 0 {
				s.yieldAfter(ctx, &last, at, yield)
				return
			}
		}
	}
	if err == nil {
		err = s.run(ctx, func(segment provider.Segment, _ error) bool {
			return s.yieldAfter(ctx, &segment, at, yield)
		})
	}
	if err != nil {
		yield(history.Event{}, wrapError(instanceID, executionID, err))
	}
}

// yieldAfter yields the events of a segment after a position, and advances the position. It reports whether the caller
// continues the iteration.
func (s *stream) yieldAfter(
	ctx context.Context, segment *provider.Segment, at *provider.Tail, yield func(history.Event, error) bool,
) bool {
	for _, e := range segment.Events {
		if e.ID <= at.Event {
			continue
		}
		err := s.store.showDocuments(ctx, s.instanceID, &e)
		if err == nil {
			at.Event = e.ID
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	at.Segment = segment.Sequence + 1
	return true
}

// segmentOf returns the number of the segment that contains an event. If this is the last segment, or if the event does
// not exist, it also returns the last segment, so that a reader that has read everything does not read it twice. It
// searches backward from the end in steps that double, because most callers have read nearly everything.
func (st *Store) segmentOf(
	ctx context.Context, instanceID, executionID string, eventID int64,
) (last provider.Segment, number int64, err error) {
	start, err := st.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	switch {
	case err != nil:
		return last, 0, err
	case len(start) == 0, table.IsStub(start), table.GetString(start, table.AttrInstance) != instanceID:
		return last, 0, provider.ErrNotFound
	}
	last, err = st.ReadLastSegment(ctx, executionID)
	switch {
	case err != nil, len(last.Events) == 0:
		return last, 0, err // the last segment cannot be read: the read from the start reports why
	case last.Events[0].ID <= eventID:
		return last, last.Sequence, nil
	}
	number, err = searchBefore(ctx, st, executionID, last.Sequence, eventID)
	return provider.Segment{}, number, err
}

// searchBefore returns the number of the segment that contains an event, which is before the given segment. It returns
// 0 if a segment cannot be read.
func searchBefore(ctx context.Context, st *Store, executionID string, behind, eventID int64) (int64, error) {
	known := int64(0) // the event is in this segment or later, and before segment behind
	for step := int64(1); behind-known > 1; step *= 2 {
		probe := max(behind-step, known+1)
		if known > 0 {
			probe = known + (behind-known)/2
		}
		s, err := st.ReadSegment(ctx, executionID, probe)
		switch {
		case err != nil:
			return 0, fmt.Errorf("search event %d: %w", eventID, err)
		case len(s.Events) == 0:
			return 0, nil
		case s.Events[0].ID <= eventID:
			known = probe
		default:
			behind = probe
		}
	}
	return known, nil
}
