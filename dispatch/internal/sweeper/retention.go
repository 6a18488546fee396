package sweeper

import (
	"context"
	"fmt"
	"sync"
)

// retentionConcurrency is the number of instances that are deleted at once. A small one takes three calls in sequence.
const retentionConcurrency = 32

// applyRetention deletes instances and past executions whose retention has expired, until none is left or the time
// limit expires (R21).
func (s *Sweeper) applyRetention(ctx context.Context, r *result) {
	var workers sync.WaitGroup
	ids := make(chan string)
	for range retentionConcurrency {
		workers.Go(func() {
			for id := range ids {
				s.applyRetentionTo(ctx, r, id)
			}
		})
	}
	for id, err := range s.provider.DueInstances(ctx) {
		if err != nil {
			r.add(ctx, fmt.Errorf("dispatch: list instances whose retention has expired: %w", err))
			break
		}
		if ids <- id; ctx.Err() != nil {
			break
		}
	}
	close(ids)
	workers.Wait()
}

// applyRetentionTo counts a deleted instance, and each deleted past execution.
func (s *Sweeper) applyRetentionTo(ctx context.Context, r *result, id string) {
	done, err := s.provider.ApplyRetention(ctx, id)
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
