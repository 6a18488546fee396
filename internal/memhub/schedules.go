package memhub

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
	return st.call(ctx, func() error {
		st.entries[s.ID] = s.NotedAt.Truncate(time.Millisecond)
		return nil
	})
}

// DeleteScheduleEntry implements provider.Schedules.
func (st *schedules) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	return st.call(ctx, func() error {
		if at, noted := st.entries[s.ID]; noted && at.Equal(s.NotedAt) {
			delete(st.entries, s.ID)
		}
		return nil
	})
}

// ListSchedules implements provider.Schedules.
func (st *schedules) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return sequence(ctx, st.base, func() (all []provider.ScheduleEntry) {
		for _, id := range slices.Sorted(maps.Keys(st.entries)) {
			if id > after {
				all = append(all, provider.ScheduleEntry{ID: id, NotedAt: st.entries[id]})
			}
		}
		return all
	})
}
