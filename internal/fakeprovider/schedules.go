package fakeprovider

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// PutScheduleEntry implements provider.Schedules.
func (p *Provider) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	if p.schedules == nil {
		p.schedules = map[string]time.Time{}
	}
	p.schedules[s.ID] = s.NotedAt.Truncate(time.Millisecond)
	return nil
}

// DeleteScheduleEntry implements provider.Schedules.
func (p *Provider) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	if at, noted := p.schedules[s.ID]; noted && at.Equal(s.NotedAt) {
		delete(p.schedules, s.ID)
	}
	return nil
}

// ListSchedules implements provider.Schedules.
func (p *Provider) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return func(yield func(provider.ScheduleEntry, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(provider.ScheduleEntry{}, err)
			return
		}
		noted := maps.Clone(p.schedules)
		p.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(noted)) {
			if id > after && !yield(provider.ScheduleEntry{ID: id, NotedAt: noted[id]}, nil) {
				return
			}
		}
	}
}
