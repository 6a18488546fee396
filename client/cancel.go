package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Cancel requests that an instance ends. Every wait of its code returns a *perdure.CancelledError, so that the code can
// run its compensations and return. The status is Cancelling until the code returns. If the code returns the
// CancelledError, the status is then Cancelled. Otherwise it is Completed or Failed. The message is the reason, at most
// 1 KiB.
//
// Cancel returns ErrNotFound if the instance does not exist and ErrEnded if it has ended. Repeating the call has no
// effect.
func (c *Client) Cancel(ctx context.Context, instanceID, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	m := provider.Message{
		Kind: provider.MessageCancel, InstanceID: instanceID, Text: message,
		Reason: string(perdure.ReasonRequested), RequestedBy: c.cancelRequester(ctx),
	}
	_, err := c.ops.Send(ctx, clientcall.Cancel, m)
	return wrap("cancel", err)
}

// CancelActivity requests that one activity of an instance's current execution is cancelled, even if the activity still
// waits for a worker. The orchestration receives a *perdure.CancelledError as the activity's result. The activity's ID
// is the ID of the event that scheduled it (see History). The message is the reason, at most 1 KiB.
//
// CancelActivity returns ErrNotFound if the instance does not exist. It returns ErrActivityNotFound, which wraps
// ErrNotFound, if the current execution has no such activity. It returns ErrNotCancellable if the activity has ended or
// is already cancelled. An activity that ends before the request arrives is not cancelled.
func (c *Client) CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	return wrap("cancel activity", c.ops.CancelActivity(ctx, instanceID, activityID, message))
}
