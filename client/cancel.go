package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Cancel asks an instance to end. Its code receives a *perdure.CancelledError wherever it waits, and unwinds: its
// compensations run. Until then the instance is Cancelling, and afterwards Cancelled, or whatever else its code
// decides. The message, of at most 1 KiB, is the reason. It returns ErrNotFound when there is no such instance, and
// ErrTerminal when it is over. Repeating it changes nothing.
func (c *Client) Cancel(ctx context.Context, instanceID, message string) error {
	if err := checkText(fieldMessage, message, 0, MaxMessageBytes); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	m := provider.Message{
		Kind: provider.MessageCancel, InstanceID: instanceID, Text: message,
		Reason: string(perdure.ReasonRequested), RequestedBy: c.decider(ctx),
	}
	if err := c.send(ctx, callCancel, m); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	return nil
}

// CancelActivity asks for one activity of an instance's current execution to be cancelled, whether it runs or still
// waits for a worker. The orchestration that waits for it goes on with a *perdure.CancelledError. An activity's id is
// that of the event that scheduled it, as History returns it; the message, of at most 1 KiB, is the reason.
//
// It returns ErrNotFound when there is no such instance, and ErrActivityNotFound, which is an ErrNotFound too, when the
// instance has no such activity. It returns ErrNotCancellable when the activity is over or cancelled already. An
// activity that ends while the request is on its way is not cancelled.
func (c *Client) CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	if err := c.cancelActivity(ctx, instanceID, activityID, message); err != nil {
		return fmt.Errorf("client: cancel activity: %w", err)
	}
	return nil
}

func (c *Client) cancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	if err := checkText(fieldMessage, message, 0, MaxMessageBytes); err != nil {
		return err
	}
	if activityID < 1 {
		return &provider.FieldError{Field: "activityId", Problem: fmt.Sprintf("must be at least 1, is %d", activityID)}
	}
	requester := c.caller(ctx)
	return c.call(ctx, callCancelActivity, instanceID, "", func(ctx context.Context) error {
		in, err := c.readInstance(ctx, instanceID)
		if err != nil {
			return err
		}
		if err := c.checkCancellable(ctx, in, activityID); err != nil {
			return fmt.Errorf("instance %q: activity #%d: %w", instanceID, activityID, err)
		}
		return c.hub.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageCancelActivity, InstanceID: instanceID, ExecutionID: in.ExecutionID, ActivityID: activityID, Text: message, RequestedBy: requester,
			TraceParent: traceOf(ctx),
		})
	})
}

// checkCancellable reads the history from the event with that id, which must be the one that scheduled the activity: no
// event before it concerns the activity.
func (c *Client) checkCancellable(ctx context.Context, in provider.Instance, activityID int64) error {
	state := history.NewState(history.KeepOpen)
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
	case !ok || open.Arrived || open.Cancelled || open.CancelAsked:
		return fmt.Errorf("it is over: %w", ErrNotCancellable)
	case state.Over():
		return fmt.Errorf("its execution is over: %w", ErrNotCancellable)
	default:
		return nil
	}
}
