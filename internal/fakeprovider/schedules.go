package fakeprovider

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// schedules stores the list of schedules (provider.Schedules).
type schedules struct {
	*base

	entries map[string]time.Time
}

// PutScheduleEntry implements provider.Schedules.
func (st *schedules) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	if st.entries == nil {
		st.entries = map[string]time.Time{}
	}
	st.entries[s.ID] = s.NotedAt.Truncate(time.Millisecond)
	return nil
}

// DeleteScheduleEntry implements provider.Schedules.
func (st *schedules) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	if at, noted := st.entries[s.ID]; noted && at.Equal(s.NotedAt) {
		delete(st.entries, s.ID)
	}
	return nil
}

// ListSchedules implements provider.Schedules.
func (st *schedules) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return func(yield func(provider.ScheduleEntry, error) bool) {
		if err := st.begin(ctx); err != nil {
			yield(provider.ScheduleEntry{}, err)
			return
		}
		noted := maps.Clone(st.entries)
		st.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(noted)) {
			if id > after && !yield(provider.ScheduleEntry{ID: id, NotedAt: noted[id]}, nil) {
				return
			}
		}
	}
}
