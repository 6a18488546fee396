package admin

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// PurgeQueuesOption is an option of PurgeQueues.
type PurgeQueuesOption func(*purgeQueuesOptions)

type purgeQueuesOptions struct {
	onProgress func(provider.QueuePurgeResult)
	onStall    func(Stall)
}

// OnProgress sets a function that is called after each page of deleted schedules, with the totals so far.
func OnProgress(f func(provider.QueuePurgeResult)) PurgeQueuesOption {
	return func(o *purgeQueuesOptions) { o.onProgress = f }
}

// OnStall sets a function that is called about once a minute while no call succeeds.
func OnStall(f func(Stall)) PurgeQueuesOption {
	return func(o *purgeQueuesOptions) { o.onStall = f }
}

// PurgeQueues deletes all messages and timers from the hub's queues and schedules. Use it after you restore the table
// to an earlier time, because the messages belong to a history that does not exist anymore.
//
// The hub must be paused and have no dead letters. Otherwise PurgeQueues returns provider.ErrBusy and deletes nothing.
// Stop all senders first, because the call may delete messages that they send. PurgeQueues returns after about nine
// minutes. After that it is safe to send messages again. Repeating the call is safe.
//
// PurgeQueues repeats throttled calls, and calls without a response within a minute. It fails if no call has succeeded
// for an hour.
func (c *Client) PurgeQueues(ctx context.Context, opts ...PurgeQueuesOption) (provider.QueuePurgeResult, error) {
	if err := c.requireProvider("PurgeQueues"); err != nil {
		return provider.QueuePurgeResult{}, err
	}
	hub, ok := unwrap.As[provider.Reconciler](c.hub)
	if !ok {
		return provider.QueuePurgeResult{}, fmt.Errorf("admin: purge queues: %w", ErrReconcileUnsupported)
	}
	var o purgeQueuesOptions
	for _, opt := range opts {
		opt(&o)
	}

	total := provider.QueuePurgeResult{Messages: map[string]int{}}
	budget := c.retryBudget(o.onStall)
	err := budget.Do(ctx, retrybudget.IsTransient, func() error {
		earlier := total.Schedules
		purged, err := hub.PurgeQueues(ctx, func(progress provider.QueuePurgeResult) {
			budget.Succeeded()
			if progress.Schedules += earlier; o.onProgress != nil {
				o.onProgress(progress)
			}
		})
		total.Schedules += purged.Schedules
		for queue, n := range purged.Messages { // a retry does not count the messages that the failed attempt purged
			total.Messages[queue] = max(total.Messages[queue], n)
		}
		return err
	})
	if err == nil {
		err = c.sleep(ctx, purgeCooldown)
	}
	if err != nil {
		return total, fmt.Errorf("admin: purge queues: %w", err)
	}
	return total, nil
}
