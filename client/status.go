package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// RuntimeStatus is the status of an instance. Its method Terminal reports whether the instance has ended.
type RuntimeStatus = provider.RuntimeStatus

// Statuses of an instance.
const (
	// StatusPending means that the instance was started and no turn has run.
	StatusPending = provider.StatusPending
	// StatusRunning means that a turn has run. The instance usually waits for something.
	StatusRunning = provider.StatusRunning
	// StatusCompleted means that the instance ended with an output.
	StatusCompleted = provider.StatusCompleted
	// StatusFailed means that the instance ended with an error.
	StatusFailed = provider.StatusFailed

	// StatusCancelling means that a cancellation was requested and the code has not returned yet.
	StatusCancelling = provider.StatusCancelling
	// StatusCancelled means that the instance ended because it was cancelled.
	StatusCancelled = provider.StatusCancelled
	// StatusTerminated means that the instance was terminated without running its code.
	StatusTerminated = provider.StatusTerminated
	// StatusBlocked means that the code cannot continue in the current build. Status.Failure has the reason. The
	// instance continues when a build is deployed whose code can.
	StatusBlocked = provider.StatusBlocked
	// StatusPaused means that the instance is paused. Status.Paused has the requester. Inputs are stored until Resume.
	StatusPaused = provider.StatusPaused
	// StatusDeleting means that the instance has ended and is being purged. It has no result.
	StatusDeleting = provider.StatusDeleting
)

// Status is the state of an instance. Its JSON is that of the HTTP API.
type Status struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	// ExecutionNumber counts the executions of the instance from 1. Continue-as-new starts the next one.
	ExecutionNumber int64  `json:"executionNumber"`
	Orchestration   string `json:"orchestration"`
	// Version is the orchestration's version. It is empty before the first turn if none was requested.
	Version   string        `json:"version"`
	Status    RuntimeStatus `json:"status"`
	CreatedAt time.Time     `json:"createdAt"`
	// UpdatedAt is when Status or CustomStatus last changed.
	UpdatedAt time.Time `json:"updatedAt"`
	// StartAt is when the first turn may run if the instance was started with a delay. Otherwise it is zero.
	StartAt time.Time `json:"startAt,omitzero"`
	// Parent is the parent that waits for the instance, or nil.
	Parent *history.Parent `json:"parent,omitempty"`
	// StartedBy is the caller that started the instance, usually an IAM identity. TerminatedBy is the caller that
	// terminated it. Both are empty if unknown, and List does not set them.
	StartedBy    string            `json:"startedBy,omitempty"`
	TerminatedBy string            `json:"terminatedBy,omitempty"`
	Tags         map[string]string `json:"tags"`
	// CustomStatus is nil if the orchestration has not set one.
	CustomStatus json.RawMessage `json:"customStatus"`

	// Output is the result of a completed orchestration. Failure is why an instance failed, was cancelled or
	// terminated, or is blocked. List does not set them.
	Output  json.RawMessage  `json:"output,omitempty"`
	Failure *history.Failure `json:"failure,omitempty"`
	// EncodedOutput and EncodedCustomStatus describe an output and a custom status that this client cannot decode (see
	// WithCodec). Otherwise they are nil.
	EncodedOutput       *EncodedPayload `json:"outputSealed,omitempty"`
	EncodedCustomStatus *EncodedPayload `json:"customStatusSealed,omitempty"`
	// Paused holds the requester, reason and time of a pause. It is nil if the instance is not paused. List sets it
	// only if ListQuery.Status is StatusPaused.
	Paused *history.Pause `json:"paused,omitempty"`
	// Notes are the newest notes (Annotate), the oldest first. List does not set them.
	Notes []Note `json:"notes,omitempty"`
}

// Status returns the state of an instance, and its result if it has ended. The read is strongly consistent. Status
// returns ErrNotFound if the instance does not exist. Use Pending to find out what the instance is waiting for.
func (c *Client) Status(ctx context.Context, instanceID string) (Status, error) {
	s, err := c.ops.Status(ctx, instanceID)
	if err != nil {
		return Status{}, fmt.Errorf("client: status: %w", err)
	}
	return s, nil
}
