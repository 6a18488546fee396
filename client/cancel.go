package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Cancel asks an instance to end. Its code sees a *perdure.CancelledError wherever it waits, and unwinds: what it compensates is
// compensated. Until then the instance is Cancelling, and then Cancelled, or whatever else its code makes of it. The message,
// of at most 1 KiB, says why. ErrNotFound when there is no such instance, ErrTerminal when it is over. Repeating it changes
// nothing.
func (c *Client) Cancel(ctx context.Context, instanceID, message string) error {
	if err := checkText(fieldMessage, message, 0, MaxMessageBytes); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	m := provider.Message{
		Kind: provider.MessageCancel, InstanceID: instanceID, Text: message,
		Reason: string(perdure.ReasonRequested), RequestedBy: c.decider(ctx),
	}
	if err := c.tell(ctx, m); err != nil {
		return fmt.Errorf("client: cancel: %w", err)
	}
	return nil
}

// CancelActivity asks for one activity of an instance's current execution to be cancelled, whether it runs or still waits for a
// worker. The orchestration that waits for it goes on with a *perdure.CancelledError. An activity's id is that of the event
// that scheduled it, as History shows it; the message, of at most 1 KiB, says why.
//
// ErrNotFound when there is no such instance, and ErrActivityNotFound, which is an ErrNotFound too, when it has no such
// activity. ErrNotCancellable when the activity is over or cancelled already. One that ends while the request is on its way is
// not cancelled.
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
	in, err := c.readInstance(ctx, instanceID)
	if err != nil {
		return err
	}
	if err := c.checkCancellable(ctx, in, activityID); err != nil {
		return fmt.Errorf("instance %q: activity #%d: %w", instanceID, activityID, err)
	}
	return c.provider.EnqueueForOrchestrator(ctx, provider.Message{
		Kind: provider.MessageCancelActivity, InstanceID: instanceID, ExecutionID: in.ExecutionID, ActivityID: activityID, Text: message, RequestedBy: c.caller(ctx),
	})
}

// checkCancellable reads the history from the event of that id on, which must be the one that scheduled the activity: nothing
// before it is about the activity.
func (c *Client) checkCancellable(ctx context.Context, in provider.Instance, activityID int64) error {
	var events []history.Event
	for e, err := range c.provider.ReadHistory(ctx, in.InstanceID, in.ExecutionID, activityID-1) {
		if err != nil {
			return err
		}
		if len(events) == 0 && e.Kind != history.ActivityScheduled {
			break
		}
		events = append(events, e)
	}
	switch {
	case len(events) == 0:
		return ErrActivityNotFound
	case provider.Settled([]provider.Segment{{Events: events}})[activityID] || isCancelled(events, activityID):
		return fmt.Errorf("it is over: %w", ErrNotCancellable)
	case events[len(events)-1].Kind.Terminal():
		return fmt.Errorf("its execution is over: %w", ErrNotCancellable)
	default:
		return nil
	}
}

// isCancelled reports whether a cancel of an activity is decided, or waits to be by an instance that is blocked.
func isCancelled(events []history.Event, activityID int64) bool {
	return slices.ContainsFunc(events, func(e history.Event) bool {
		return e.Kind == history.ActivityCancelRequested && slices.Contains(e.Sources(), activityID) || isCancelled(e.Inputs, activityID)
	})
}
