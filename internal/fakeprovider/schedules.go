package fakeprovider

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// NoteSchedule implements provider.Schedules.
func (p *Provider) NoteSchedule(ctx context.Context, s provider.NotedSchedule) error {
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

// ForgetSchedule implements provider.Schedules.
func (p *Provider) ForgetSchedule(ctx context.Context, s provider.NotedSchedule) error {
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
func (p *Provider) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.NotedSchedule, error] {
	return func(yield func(provider.NotedSchedule, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(provider.NotedSchedule{}, err)
			return
		}
		noted := maps.Clone(p.schedules)
		p.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(noted)) {
			if id > after && !yield(provider.NotedSchedule{ID: id, NotedAt: noted[id]}, nil) {
				return
			}
		}
	}
}
