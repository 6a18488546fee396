package sweeper

import (
	"context"
	"fmt"
)

// retentionConcurrency is the number of concurrent deletions. A small instance takes three calls in sequence.
const retentionConcurrency = 32

// applyRetention deletes instances and past executions whose retention has expired, until none is left or the time
// limit expires (R21).
func (s *Sweeper) applyRetention(ctx context.Context, r *result) {
	due := func(yield func(string) bool) {
		for id, err := range s.Provider.DueInstances(ctx) {
			if err != nil {
				r.add(ctx, fmt.Errorf("dispatch: list instances whose retention has expired: %w", err))
				return
			}
			if !yield(id) {
				return
			}
		}
	}
	forEach(ctx, due, retentionConcurrency, func(id string) { s.applyRetentionTo(ctx, r, id) })
}

// applyRetentionTo applies retention to an instance. It counts the deleted instance, or each deleted past execution.
func (s *Sweeper) applyRetentionTo(ctx context.Context, r *result, id string) {
	done, err := s.Provider.ApplyRetention(ctx, id)
	n := done.Executions
	if done.Instance {
		n++
	}
	for range n {
		r.add(ctx, nil)
	}
	if err != nil {
		r.add(ctx, err)
	}
}
