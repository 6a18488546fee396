package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/cancellog"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Cancellation describes the cancellation of an instance or of one of its tasks: the target, the requester and the
// outcome. Its JSON is the same as in the HTTP API.
type Cancellation struct {
	Target CancelTarget `json:"target"`
	// ID is the ID of the event that scheduled the target. For the instance, it is the ID of the cancel request.
	ID int64 `json:"id"`
	// Name is the name of the activity, of the orchestration, or of the timer if the timer has one
	// (perdure.WithTimerName).
	Name string `json:"name,omitempty"`
	// ChildID is the instance ID of a sub-orchestration.
	ChildID string `json:"childId,omitempty"`

	// Reason is one of the values of perdure.CancelReason. Message is the text that the requester gave.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// RequestedBy is the requester: an IAM identity, a name set by WithCaller or ContextWithCaller, or "client" if the
	// client does not know it. It is "body" for the orchestration's code, "engine" for the engine, and "parent:" with
	// an instance ID for the parent. It is empty for a timer.
	RequestedBy string    `json:"requestedBy,omitempty"`
	DecidedAt   time.Time `json:"decidedAt"`

	// SeenAt is the time at which a worker observed the cancellation. EndedAt is the time at which the target ended.
	// Each is zero if the event has not happened or its time is unknown.
	SeenAt  time.Time `json:"seenAt,omitzero"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	// End is the outcome of the target. It is empty if the target has not ended or the outcome is unknown.
	End CancelOutcome `json:"end,omitempty"`
	// Error is the reason why a sub-orchestration could not be cancelled (OutcomeNotCancellable).
	Error *history.Failure `json:"error,omitempty"`
}

// CancelTarget is the kind of target of a cancellation.
type CancelTarget = cancellog.Target

// Targets of a cancellation.
const (
	TargetInstance         = cancellog.Instance
	TargetActivity         = cancellog.Activity
	TargetTimer            = cancellog.Timer
	TargetSubOrchestration = cancellog.SubOrchestration
)

// CancelOutcome is the outcome of a cancelled target.
type CancelOutcome = provider.CancelOutcome

// Outcomes of a cancellation.
const (
	// OutcomeNeverStarted means that the activity's code was not run.
	OutcomeNeverStarted = provider.OutcomeNeverStarted
	// OutcomeStopped means that the activity returned an error after its context ended.
	OutcomeStopped = provider.OutcomeStopped
	// OutcomeCompleted means that the target returned a result despite the cancellation.
	OutcomeCompleted = provider.OutcomeCompleted
	// OutcomeAbandoned means that the activity ignored its context and its worker abandoned it after the grace period.
	OutcomeAbandoned = provider.OutcomeAbandoned
	// OutcomeTimerRemoved means that the timer was removed.
	OutcomeTimerRemoved = cancellog.TimerRemoved
	// OutcomeCancelled means that the instance ended with StatusCancelled.
	OutcomeCancelled = cancellog.Cancelled
	// OutcomeFailed means that the instance ended without a result and its status is not StatusCancelled.
	OutcomeFailed = cancellog.Failed
	// OutcomeNotCancellable means that the sub-orchestration could not be cancelled. Cancellation.Error is the reason.
	OutcomeNotCancellable = cancellog.NotCancellable
	// OutcomeWorkerLost means that the worker died or was stopped before it reported an end. It occurs only with
	// perdure.WaitForCancellation.
	OutcomeWorkerLost = CancelOutcome(history.OutcomeWorkerLost)
	// OutcomeTimedOut means that the schedule-to-close timeout expired before a worker reported an end. It occurs only
	// with perdure.WaitForCancellation.
	OutcomeTimedOut = CancelOutcome(history.OutcomeTimedOut)
)

// CancellationPage is one page of the cancellations of an execution.
type CancellationPage struct {
	Page[Cancellation]

	InstanceID  string
	ExecutionID string
	// StartedAt is the start time of the execution.
	StartedAt time.Time
}

// Cancellations yields the cancellations of an execution in the order in which they were decided. An empty executionID
// selects the current execution. The read is strongly consistent.
//
// Cancellations reads the whole history of the execution before it yields the first item. It also reads the instances
// of up to MaxPageSize cancelled sub-orchestrations whose end the history does not contain.
//
// The iterator ends with the first error. The error is ErrNotFound if the instance or the execution does not exist or
// is being purged.
func (c *Client) Cancellations(ctx context.Context, instanceID, executionID string) iter.Seq2[Cancellation, error] {
	return func(yield func(Cancellation, error) bool) {
		of, err := historyOptions{executionID: executionID}.of(instanceID)
		if err != nil {
			yield(Cancellation{}, fmt.Errorf("client: cancellations: %w", err))
			return
		}
		for x, err := range c.ops.Cancellations(ctx, of) {
			if err != nil {
				yield(Cancellation{}, fmt.Errorf("client: cancellations: %w", err))
				return
			}
			if !yield(Cancellation(x), nil) {
				return
			}
		}
	}
}

// CancellationsPage returns one page of Cancellations. Later cancellations are appended, so cursors remain valid. Each
// call reads the whole history, but only the sub-orchestrations of its page.
func (c *Client) CancellationsPage(
	ctx context.Context, instanceID, executionID string, p Paging,
) (page CancellationPage, err error) {
	defer func() { err = wrap("cancellations", err) }()
	err = cancellog.CheckCursor(p.Cursor)
	if err == nil {
		err = inputcheck.Limit(p.Limit)
	}
	of, invalid := historyOptions{executionID: executionID}.of(instanceID)
	if err = cmp.Or(err, invalid); err != nil {
		return page, err
	}
	found, err := c.ops.CancellationsPage(ctx, of, cmp.Or(p.Limit, defaultPage), p.Cursor)
	page.InstanceID, page.ExecutionID, page.StartedAt = instanceID, found.ExecutionID, found.StartedAt
	page.NextCursor = found.NextCursor
	for i := range found.Items {
		page.Items = append(page.Items, Cancellation(found.Items[i]))
	}
	return page, err
}
