package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// EmptyOption says what EmptyQueues tells.
type EmptyOption func(*emptying)

type emptying struct {
	progress func(provider.Emptied)
	waiting  func(Waiting)
}

// OnEmptied has f called while schedules are deleted, after each page of them, with how much is deleted so far.
func OnEmptied(f func(provider.Emptied)) EmptyOption { return func(e *emptying) { e.progress = f } }

// OnWaiting has f called about once a minute while no call succeeds.
func OnWaiting(f func(Waiting)) EmptyOption { return func(e *emptying) { e.waiting = f } }

// EmptyQueues deletes all that the hub's queues and schedules hold, for a table that was restored to an earlier time: that
// belongs to a history that is gone, and may settle what it never was for. The hub must be at rest (perdure pause), and no dead
// letters be left: the error is then provider.ErrBusy, and nothing is deleted. It returns when messages may be sent again,
// after some seven minutes. What anybody else sends meanwhile may be deleted, and so may what is sent again with
// its id: senders stop before, and begin afterwards.
//
// Calls that are throttled, or not answered within a minute, are repeated until none has succeeded for an hour. Repeating it is harmless,
// also after it has died half way.
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
