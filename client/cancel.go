package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Cancel requests that an instance ends. Every wait of its code returns a *perdure.CancelledError, so that the code can
// run its compensations and return. The status is Cancelling until the code returns. It is then Cancelled, or the
// status that results from what the code returned. The message is the reason, at most 1 KiB.
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
	if err := c.send(ctx, clientcall.Cancel, m); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	return nil
}

// CancelActivity requests that one activity of an instance's current execution is cancelled, whether it is running or
// waiting for a worker. The orchestration receives a *perdure.CancelledError as the activity's result. The activity's
// ID is the ID of the event that scheduled it (see History). The message is the reason, at most 1 KiB.
//
// It returns ErrNotFound if the instance does not exist, ErrActivityNotFound if the current execution has no such
// activity, and ErrNotCancellable if the activity has ended or is cancelled already. ErrActivityNotFound is an
// ErrNotFound. An activity that ends before the request arrives is not cancelled.
func (c *Client) CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	if err := c.cancelActivity(ctx, instanceID, activityID, message); err != nil {
		return fmt.Errorf("client: cancel activity: %w", err)
	}
	return nil
}

func (c *Client) cancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return err
	}
	if activityID < 1 {
		return &provider.FieldError{Field: "activityId", Problem: fmt.Sprintf("must be at least 1, is %d", activityID)}
	}
	requester := c.calls.Caller(ctx)
	return c.call(ctx, clientcall.CancelActivity, instanceID, "", func(ctx context.Context) error {
		in, err := c.readInstance(ctx, instanceID)
		if err != nil {
			return err
		}
		if err := c.checkCancellable(ctx, in, activityID); err != nil {
			return fmt.Errorf("instance %q: activity #%d: %w", instanceID, activityID, err)
		}
		return c.hub.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageCancelActivity, InstanceID: instanceID, ExecutionID: in.ExecutionID, ActivityID: activityID, Text: message, RequestedBy: requester,
			TraceParent: traceParentOf(ctx),
		})
	})
}

// checkCancellable reads the history from the event with that id, which must be the one that scheduled the activity: no
// event before it concerns the activity.
func (c *Client) checkCancellable(ctx context.Context, in provider.Instance, activityID int64) error {
	state := history.NewState(history.TrackOpen)
	for e, err := range c.hub.ReadHistory(ctx, in.InstanceID, in.ExecutionID, activityID-1) {
		if err != nil {
			return err
		}
		if state.LastID == 0 && e.Kind != history.ActivityScheduled {
			break
		}
		state.Apply(e)
	}

	open, ok := state.Open(activityID)
	switch {
	case state.LastID == 0:
		return ErrActivityNotFound
	case !ok || open.OutcomeParked || open.Cancelled || open.CancelRequestParked:
		return fmt.Errorf("ended or already cancelled: %w", ErrNotCancellable)
	case state.Ended():
		return fmt.Errorf("execution has ended: %w", ErrNotCancellable)
	default:
		return nil
	}
}
