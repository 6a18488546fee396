package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// Wait polls soon at first, since many orchestrations are over in moments, and then less and less often.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// Waiter is a Backend that can wait for the end of an instance without polling by the client.
type Waiter interface {
	// WaitInstance returns the instance when it has ended, and ErrNotFound if it does not exist. When ctx ends first,
	// it returns the last known state and the error of ctx.
	WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error)
}

// Wait waits until the instance has ended and returns its status and result. When ctx ends first, it returns the last
// known state and the error of ctx. A failed orchestration is not an error of Wait: use Result. Wait returns
// ErrNotFound if the instance does not exist.
func (c *Client) Wait(ctx context.Context, instanceID string) (Status, error) {
	in, err := c.waitInstance(ctx, instanceID)
	if err != nil {
		return c.statusOf(ctx, &in), fmt.Errorf("client: wait: %w", waitError(ctx, instanceID, err))
	}
	s, err := c.withResult(ctx, in)
	if err != nil {
		return s, fmt.Errorf("client: wait: %w", waitError(ctx, instanceID, err))
	}
	return s, nil
}

// WaitForStart waits until the first turn of the instance is committed and returns its status, which is not Pending.
// This can take long if the instance was started with a delay. If the first turn runs inline activities, WaitForStart
// returns up to a second after its commit.
//
// If the instance is paused or blocked before its first turn, WaitForStart returns this status. If the instance has
// ended, the status includes the result. WaitForStart returns the errors of Wait.
func (c *Client) WaitForStart(ctx context.Context, instanceID string) (Status, error) {
	var last provider.Instance
	err := c.lookWaiting(ctx, instanceID, func(ctx context.Context) (done bool, err error) {
		in, err := c.readInstance(ctx, instanceID)
		if err != nil {
			return false, err
		}
		last = in
		return in.Status != StatusPending, nil
	})
	if err != nil {
		return c.statusOf(ctx, &last), fmt.Errorf("client: wait for start: %w", waitError(ctx, instanceID, err))
	}
	s, err := c.withResult(ctx, last)
	if err != nil {
		return s, fmt.Errorf("client: wait for start: %w", waitError(ctx, instanceID, err))
	}
	return s, nil
}

func (c *Client) waitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if w, ok := offered.By[Waiter](c.hub); ok {
		if err := inputcheck.InstanceID(instanceID); err != nil {
			return provider.Instance{}, err
		}
		return w.WaitInstance(ctx, instanceID)
	}
	return c.poll(ctx, instanceID)
}

func (c *Client) poll(ctx context.Context, instanceID string) (last provider.Instance, err error) {
	err = c.lookUntil(ctx, func(ctx context.Context) (done bool, err error) {
		in, err := c.readInstance(ctx, instanceID)
		if err != nil {
			return false, err
		}
		last = in
		return in.Status.Terminal(), nil
	})
	return last, err
}

// lookWaiting is lookUntil for what an instance is to do, where the hub lets time pass by itself.
func (c *Client) lookWaiting(ctx context.Context, instanceID string, look func(context.Context) (done bool, err error)) error {
	if w, ok := offered.By[UpdateWaiter](c.hub); ok {
		return w.WaitUpdate(ctx, instanceID, look)
	}
	return c.lookUntil(ctx, look)
}

// lookUntil looks until it is done, soon at first, and then less and less often.
func (c *Client) lookUntil(ctx context.Context, look func(context.Context) (done bool, err error)) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if done, err := look(ctx); done || err != nil {
			return err
		}
		// Jitter: clients that wait for the same moment do not look at the same moment.
		if err := c.sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return err
		}
	}
}

// waitError returns ctx's error once ctx has ended, whichever call noticed that.
func waitError(ctx context.Context, instanceID string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("instance %q: %w", instanceID, ended)
	}
	return err
}
