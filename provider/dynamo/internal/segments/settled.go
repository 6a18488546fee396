package segments

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

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
