package segments

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ReadAwaitedTimers reads the history with strong consistency from the segment that sent the first of an execution's
// timers. It returns a state in which the awaited timers are open. If the history is missing or unreadable, the timers
// stay open, because a timer can belong to a start whose transaction will follow (R11).
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
			return waits, nil // an unreadable history decides nothing
		}
	}
	return waits, nil
}

// maySettle reports whether a segment's document may contain an event that ends a wait. The turn that created ten
// thousand timers is read for each batch of them, and decoding its events takes a hundred times as long as this check.
func maySettle(doc []byte) bool {
	return slices.ContainsFunc(settlingKinds, func(kind []byte) bool { return bytes.Contains(doc, kind) })
}

// settlingKinds holds the kinds of such events in their encoded form.
var settlingKinds = func() (kinds [][]byte) {
	for _, k := range history.Kinds() {
		if k.HasSource() || k.Terminal() {
			kinds = append(kinds, []byte(`"kind":"`+string(k)+`"`))
		}
	}
	return kinds
}()
