package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// Wait polls soon at first, since many orchestrations are over in moments, and then less and less often.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// Waiter is a Hub that can wait without polling.
type Waiter interface {
	// WaitInstance returns the instance once it is over. It returns an error that is ErrNotFound when there is none,
	// and the last known state with ctx's error when ctx ends first.
	WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error)
}

// Wait returns how the instance ended, as soon as it is over. When ctx ends first, it returns ctx's error, and the
// instance's state at the last poll. A failed orchestration is not an error of Wait: Result makes it one. It returns ErrNotFound when there
// is no such instance.
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

// WaitForStart returns how the instance stands as soon as it is not Pending any more: its first turn is history, and its code has had its input. That may be long
// after its start, for one that was started with a delay, or that waits for its orchestrator; where its first turn runs inline activities that is shown a second later at the most. One that is Paused or Blocked before its first turn comes back as that,
// since nobody knows for how long; one that is over already comes back with its result, as from Status. Errors are those of Wait.
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
		return c.statusOf(ctx, &last), fmt.Errorf("client: wait for the start: %w", waitError(ctx, instanceID, err))
	}
	s, err := c.withResult(ctx, last)
	if err != nil {
		return s, fmt.Errorf("client: wait for the start: %w", waitError(ctx, instanceID, err))
	}
	return s, nil
}

func (c *Client) waitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if w, ok := offered.By[Waiter](c.hub); ok {
		if err := checkInstanceID(instanceID); err != nil {
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
