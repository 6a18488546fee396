package timers

import (
	"context"
	"fmt"
	"sync"
)

// retiredAtOnce is how many instances are deleted side by side: three calls each, one after the other, unless they are large.
const retiredAtOnce = 32

// retire deletes what the retention of instances is over of, until nothing is left or the time of the look is over (R21).
func (k *Timekeeper) retire(ctx context.Context, t *tally) {
	var workers sync.WaitGroup
	ids := make(chan string)
	for range retiredAtOnce {
		workers.Go(func() {
			for id := range ids {
				k.retireOne(ctx, t, id)
			}
		})
	}
	for id, err := range k.provider.DueInstances(ctx) {
		if err != nil {
			t.note(ctx, fmt.Errorf("dispatch: list instances whose retention has expired: %w", err))
			break
		}
		if ids <- id; ctx.Err() != nil {
			break
		}
	}
	close(ids)
	workers.Wait()
}

// retireOne counts an instance, or each of its past executions.
func (k *Timekeeper) retireOne(ctx context.Context, t *tally, id string) {
	done, err := k.provider.ApplyRetention(ctx, id)
	n := done.Executions
	if done.Instance {
		n++
	}
	for range n {
		t.note(ctx, nil)
	}
	if err != nil {
		t.note(ctx, err)
	}
}
