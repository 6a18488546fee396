package segments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Stream yields the segments of an execution with strong consistency, and holds at most one page and one segment in
// memory. It ends with the first error. It reads a torn segment again, because only half of a transaction may have been
// visible. If large is not nil, Stream calls it once before it reads the second page of a large history.
func (st *Store) Stream(
	ctx context.Context, instanceID, executionID string, large func() error,
) iter.Seq2[provider.Segment, error] {
	return func(yield func(provider.Segment, error) bool) {
		s := stream{
			store: st, instanceID: instanceID, executionID: executionID, large: large,
			consistency: provider.Strong,
		}
		if err := s.run(ctx, yield); err != nil {
			yield(provider.Segment{}, wrapError(instanceID, executionID, err))
		}
	}
}

// stream is the progress of reading a history.
type stream struct {
	store                   *Store
	instanceID, executionID string
	next                    int64 // the number of the next segment
	consistency             provider.Consistency
	stopped                 bool         // the caller has stopped the iteration
	large                   func() error // called once before the second page; may be nil
}

// run yields the segments, starting with the next one. It repeats a read that was torn, with strong consistency.
func (s *stream) run(ctx context.Context, yield func(provider.Segment, error) bool) error {
	for try := 1; ; {
		before := s.next
		err := s.read(ctx, yield)
		if s.next > before {
			try = 1
		}
		_, torn := errors.AsType[*table.TornError](err)
		switch {
		case err == nil && (s.next > 0 || s.stopped):
			return nil
		case torn && try < table.MaxReadTries:
			try, s.consistency = try+1, provider.Strong
		case torn:
			return fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		case err == nil: // there are no segments
			return provider.ErrNotFound
		default:
			return err
		}
	}
}

// read yields the segments, starting with the next one.
func (s *stream) read(ctx context.Context, yield func(provider.Segment, error) bool) error {
	in := table.SegmentsQuery(s.executionID, s.consistency)
	if s.next > 0 {
		in = queryFrom(s.executionID, s.next)
		in.ConsistentRead = aws.Bool(s.consistency == provider.Strong)
	}
	c := decoder{Next: s.next}
	for page, err := range s.store.table.Query(ctx, s.instanceID, in) {
		if err != nil {
			return err
		}
		c.Add(page, in.ExclusiveStartKey == nil)
		if c.Next == 0 && s.belongsToOther(c.Items) {
			return provider.ErrNotFound
		}
		err = c.decode(nil, func(segment provider.Segment) bool {
			s.next++
			s.stopped = !yield(segment, nil)
			return !s.stopped
		})
		if errors.Is(err, table.ErrDeleted) {
			return provider.ErrNotFound // the execution is being deleted
		}
		if err != nil || s.stopped {
			return err
		}
		if large := s.large; large != nil && in.ExclusiveStartKey != nil {
			s.large = nil
			if err := large(); err != nil {
				return err
			}
		}
	}
	return nil
}

// belongsToOther reports whether the execution that starts with these items belongs to another instance.
func (s *stream) belongsToOther(items []table.Item) bool {
	return len(items) > 0 && table.GetString(items[0], table.AttrSK) == table.SegmentSK(0, 0) &&
		!table.IsStub(items[0]) &&
		table.GetString(items[0], table.AttrInstance) != s.instanceID
}

// ReadSettled reads segments page by page, and keeps only the settled IDs.
func (st *Store) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	for try := 1; ; try++ {
		s, err := st.settledSince(ctx, executionID, from)
		if _, torn := errors.AsType[*table.TornError](err); torn && try < table.MaxReadTries {
			continue
		} else if torn {
			err = fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		}
		if errors.Is(err, table.ErrDeleted) {
			return provider.Settlements{Next: from, Ended: true, Deleted: true}, nil
		}
		if err != nil {
			return s, fmt.Errorf("dynamo: execution %s: %w", executionID, err)
		}
		return s, nil
	}
}

func (st *Store) settledSince(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	s := provider.Settlements{Next: from}
	in := queryFrom(executionID, from)
	c := decoder{Next: from}
	for page, err := range st.table.Query(ctx, "", in) {
		if err != nil {
			return s, err
		}
		c.Add(page, in.ExclusiveStartKey == nil)
		if err := c.decode(nil, func(segment provider.Segment) bool { s.Apply(&segment); return true }); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ReadAwaitedTimers reads the history with strong consistency, starting with the segment that sent the first of an
// execution's timers. It returns a state in which the awaited timers are open. If the history is missing or unreadable,
// the timers stay open, because a timer can belong to a start whose transaction will follow (R11).
func (st *Store) ReadAwaitedTimers(ctx context.Context, timers []provider.Timer) (*history.State, error) {
	waits := history.NewState(history.TrackTimers)
	first := timers[0].Segment
	for i := range timers {
		id := timers[i].TimerID
		before, _ := waits.Open(id) // the timer of an attempt has the same ID
		waits.AddOpen(history.OpenItem{
			ID:                   id,
			FireAt:               timers[i].FireAt,
			WaitsForCancellation: timers[i].WaitForCancellation || before.WaitsForCancellation,
		})
		first = min(first, timers[i].Segment)
	}
	in := queryFrom(timers[0].ExecutionID, first)
	c := decoder{Next: first}
	for page, err := range st.table.Query(ctx, timers[0].InstanceID, in) {
		if err != nil {
			return nil, err
		}
		c.Add(page, in.ExclusiveStartKey == nil)
		over := false
		err = c.decode(maySettle, func(s provider.Segment) bool {
			waits.Apply(s.Events...)
			over = waits.Ended()
			return !over
		})
		switch {
		case errors.Is(err, table.ErrDeleted) || over:
			return &history.State{}, nil
		case err != nil:
			return waits, nil // without a readable history, all timers stay open
		}
	}
	return waits, nil
}

// maySettle reports whether a segment's document may contain an event that ends a wait. If a turn created ten thousand
// timers, its segment is read for each batch of the timers. Decoding its events takes a hundred times as long as this
// check.
func maySettle(doc []byte) bool {
	return slices.ContainsFunc(settlingKinds, func(kind []byte) bool { return bytes.Contains(doc, kind) })
}

// settlingKinds holds the encoded kinds of events that end a wait.
var settlingKinds = func() (kinds [][]byte) {
	for _, k := range history.Kinds() {
		if k.HasSource() || k.Terminal() {
			kinds = append(kinds, []byte(`"kind":"`+string(k)+`"`))
		}
	}
	return kinds
}()
