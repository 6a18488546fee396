// Package cancelling cancels single activities.
package cancelling

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Errors of CancelActivity.
var (
	ErrActivityNotFound = fmt.Errorf("the current execution has no such activity: %w", provider.ErrNotFound)
	ErrNotCancellable   = errors.New("activity is neither pending nor running")
)

// Check checks the input of CancelActivity, without the instance ID.
func Check(activityID int64, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return err
	}
	if activityID < 1 {
		return &provider.FieldError{Field: "activityId", Problem: fmt.Sprintf("must be at least 1, is %d", activityID)}
	}
	return nil
}

// CancelActivity requests the cancellation of an activity of the current execution.
func CancelActivity(ctx context.Context, h *hub.Hub, instanceID string, activityID int64, message string) error {
	if err := Check(activityID, message); err != nil {
		return err
	}
	requester := h.Calls.Caller(ctx)
	return h.Call(ctx, clientcall.CancelActivity, instanceID, "", func(ctx context.Context) error {
		in, err := h.Instance(ctx, instanceID)
		if err != nil {
			return err
		}
		if err := checkCancellable(ctx, h, in, activityID); err != nil {
			return fmt.Errorf("instance %q: activity #%d: %w", instanceID, activityID, err)
		}
		return h.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageCancelActivity, InstanceID: instanceID, ExecutionID: in.ExecutionID,
			ActivityID: activityID, Text: message, RequestedBy: requester, TraceParent: hub.TraceParent(ctx),
		})
	})
}

// checkCancellable returns an error if the activity cannot be cancelled. It reads the history from the event that
// scheduled the activity, because earlier events do not refer to the activity.
func checkCancellable(ctx context.Context, h *hub.Hub, in provider.Instance, activityID int64) error {
	state := history.NewState(history.TrackOpen)
	for e, err := range h.ReadHistory(ctx, in.InstanceID, in.ExecutionID, activityID-1) {
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
