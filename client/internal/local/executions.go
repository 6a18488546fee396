package local

import (
	"context"
	"iter"

	"github.com/perdure/perdure/client/internal/cancellog"
	"github.com/perdure/perdure/history"
)

// Current returns the execution, which is the current one if none is selected.
func (h Hub) Current(ctx context.Context, of history.ExecutionRef) (history.ExecutionRef, error) {
	if of.ExecutionID != "" {
		return of, nil
	}
	in, err := h.Instance(ctx, of.InstanceID)
	of.ExecutionID = in.ExecutionID
	return of, err
}

// Events yields the events of an execution after an event.
func (h Hub) Events(ctx context.Context, of history.ExecutionRef, after int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		of, err := h.Current(ctx, of)
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		h.ReadHistory(ctx, of.InstanceID, of.ExecutionID, after)(yield)
	}
}

// Cancellations yields the cancellations of an execution.
func (h Hub) Cancellations(
	ctx context.Context, of history.ExecutionRef,
) iter.Seq2[cancellog.Cancellation, error] {
	return func(yield func(cancellog.Cancellation, error) bool) {
		of, err := h.Current(ctx, of)
		if err != nil {
			yield(cancellog.Cancellation{}, err)
			return
		}
		cancellog.All(ctx, h.Hub, of)(yield)
	}
}

// CancellationsPage returns a page of the cancellations of an execution.
func (h Hub) CancellationsPage(
	ctx context.Context, of history.ExecutionRef, limit int, cursor string,
) (cancellog.Page, error) {
	of, err := h.Current(ctx, of)
	if err != nil {
		return cancellog.Page{}, err
	}
	return cancellog.ReadPage(ctx, h.Hub, of, limit, cursor)
}

// CurrentExecution returns the ID of the current execution of an instance.
func (h Hub) CurrentExecution(ctx context.Context, instanceID string) (executionID string, err error) {
	in, err := h.Instance(ctx, instanceID)
	return in.ExecutionID, err
}

// FailureOf returns the failure of an instance that ended with this event. It returns nil if the instance has an
// output.
func FailureOf(end *history.Event) *history.Failure {
	switch end.Kind {
	case history.OrchestrationCancelled:
		return &history.Failure{Type: history.TypeCancelled, Message: end.Message, Reason: end.Reason}
	case history.OrchestrationTerminated:
		return &history.Failure{Type: history.TypeTerminated, Message: end.Message}
	default:
		return end.Error
	}
}
