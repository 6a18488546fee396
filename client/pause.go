package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Pause stops an instance until Resume. The code of a Paused instance does not run. Events, results, timers and
// cancellations that arrive are stored in the history, and the code receives them after Resume. Scheduled activities
// and sub-orchestrations continue. Terminate also ends a paused instance. The message is the reason, at most 1 KiB.
//
// A pause survives continue-as-new. Pausing a paused instance has no effect, so one Resume is sufficient. Pause returns
// ErrNotFound if the instance does not exist and ErrEnded if it has ended.
func (c *Client) Pause(ctx context.Context, instanceID, message string) error {
	_, err := c.sendPause(ctx, clientcall.Pause, provider.MessageExecutionSuspended, instanceID, message)
	return wrap("pause", err)
}

// Resume continues a paused instance. Its code receives the stored inputs in their order. The message is the reason, at
// most 1 KiB. Repeating the call has no effect.
//
// Resume returns ErrNotFound if the instance does not exist and ErrEnded if it has ended. It returns ErrNotPaused if
// the status is not Paused, but still sends the request. The request ends a Pause that has not arrived yet.
func (c *Client) Resume(ctx context.Context, instanceID, message string) error {
	before, err := c.sendPause(ctx, clientcall.Resume, provider.MessageExecutionResumed, instanceID, message)
	if err == nil && before != StatusPaused {
		err = fmt.Errorf("instance %q is %s: %w", instanceID, before, ErrNotPaused)
	}
	return wrap("resume", err)
}

// sendPause sends a request to pause or resume an instance, and returns the status that the instance had before.
func (c *Client) sendPause(
	ctx context.Context, operation string, kind provider.MessageKind, instanceID, message string,
) (before RuntimeStatus, err error) {
	if err := inputcheck.Message(message); err != nil {
		return "", err
	}
	m := provider.Message{
		Kind: kind, InstanceID: instanceID, Text: message, RequestedBy: c.cancelRequester(ctx),
		EventID: history.PauseIDPrefix + c.hub.NewID(),
	}
	return c.ops.Send(ctx, operation, m)
}
