package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/provider"
)

// Waiter is a Backend that can wait for the end of an instance without polling by the client.
type Waiter interface {
	// WaitInstance returns the instance when it has ended, and ErrNotFound if it does not exist. When ctx ends first,
	// it returns the last known state and the error of ctx.
	WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error)
}

// Wait waits until the instance has ended and returns its status and result. When ctx ends first, it returns the last
// known state and the error of ctx. If the orchestration failed, Wait returns no error. Use Result to get the error of
// the orchestration. Wait returns ErrNotFound if the instance does not exist.
func (c *Client) Wait(ctx context.Context, instanceID string) (Status, error) {
	s, err := c.ops.Wait(ctx, instanceID)
	if err != nil {
		return s, fmt.Errorf("client: wait: %w", hub.WaitError(ctx, instanceID, err))
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
	s, err := c.ops.WaitForStart(ctx, instanceID)
	if err != nil {
		return s, fmt.Errorf("client: wait for start: %w", hub.WaitError(ctx, instanceID, err))
	}
	return s, nil
}
