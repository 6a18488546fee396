package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// EmptyOption is an option of EmptyQueues.
type EmptyOption func(*emptying)

type emptying struct {
	progress func(provider.Emptied)
	waiting  func(Waiting)
}

// OnEmptied sets a function that is called after each page of deleted schedules, with the totals so far.
func OnEmptied(f func(provider.Emptied)) EmptyOption { return func(e *emptying) { e.progress = f } }

// OnWaiting sets a function that is called about once a minute while no call succeeds.
func OnWaiting(f func(Waiting)) EmptyOption { return func(e *emptying) { e.waiting = f } }

// EmptyQueues deletes all messages and timers from the hub's queues and schedules. Use it after you restore the table
// to an earlier time, because the messages belong to a history that no longer exists.
//
// The hub must be paused and have no dead letters. Otherwise EmptyQueues returns provider.ErrBusy and deletes nothing.
// Stop all senders first: messages that they send during the call may be deleted. EmptyQueues returns after about seven
// minutes, when it is safe to send again. Repeating the call is safe.
//
// Throttled calls, and calls without a response within a minute, are repeated until no call has succeeded for an hour.
func (c *Client) EmptyQueues(ctx context.Context, opts ...EmptyOption) (provider.Emptied, error) {
	hub, ok := offered.By[provider.Reconciling](c.hub)
	if !ok {
		return provider.Emptied{}, fmt.Errorf("client: empty queues: %w", ErrNoReconciling)
	}
	var how emptying
	for _, opt := range opts {
		opt(&how)
	}

	emptied := provider.Emptied{Messages: map[string]int{}}
	p := c.patient(how.waiting)
	err := p.Do(ctx, mayYetSucceed, func() error {
		before := emptied.Schedules
		did, err := hub.EmptyQueues(ctx, func(so provider.Emptied) {
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
		return emptied, fmt.Errorf("client: empty queues: %w", err)
	}
	return emptied, nil
}
