package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// PurgeQueuesOption is an option of PurgeQueues.
type PurgeQueuesOption func(*emptying)

type emptying struct {
	progress func(provider.QueuePurgeResult)
	waiting  func(Stall)
}

// OnProgress sets a function that is called after each page of deleted schedules, with the totals so far.
func OnProgress(f func(provider.QueuePurgeResult)) PurgeQueuesOption {
	return func(e *emptying) { e.progress = f }
}

// OnStall sets a function that is called about once a minute while no call succeeds.
func OnStall(f func(Stall)) PurgeQueuesOption { return func(e *emptying) { e.waiting = f } }

// PurgeQueues deletes all messages and timers from the hub's queues and schedules. Use it after you restore the table
// to an earlier time, because the messages belong to a history that no longer exists.
//
// The hub must be paused and have no dead letters. Otherwise PurgeQueues returns provider.ErrBusy and deletes nothing.
// Stop all senders first: messages that they send during the call may be deleted. PurgeQueues returns after about seven
// minutes, when it is safe to send again. Repeating the call is safe.
//
// Throttled calls, and calls without a response within a minute, are repeated until no call has succeeded for an hour.
func (c *Client) PurgeQueues(ctx context.Context, opts ...PurgeQueuesOption) (provider.QueuePurgeResult, error) {
	hub, ok := offered.By[provider.Reconciler](c.hub)
	if !ok {
		return provider.QueuePurgeResult{}, fmt.Errorf("client: purge queues: %w", ErrReconcileUnsupported)
	}
	var how emptying
	for _, opt := range opts {
		opt(&how)
	}

	emptied := provider.QueuePurgeResult{Messages: map[string]int{}}
	p := c.retryBudget(how.waiting)
	err := p.Do(ctx, mayYetSucceed, func() error {
		before := emptied.Schedules
		did, err := hub.PurgeQueues(ctx, func(so provider.QueuePurgeResult) {
			p.Succeeded()
			if so.Schedules += before; how.progress != nil {
				how.progress(so)
			}
		})
		emptied.Schedules += did.Schedules
		for queue, n := range did.Messages { // one try may have purged what the next does not find
			emptied.Messages[queue] = max(emptied.Messages[queue], n)
		}
		return err
	})
	if err == nil {
		err = c.sleep(ctx, quietTime)
	}
	if err != nil {
		return emptied, fmt.Errorf("client: purge queues: %w", err)
	}
	return emptied, nil
}
