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
	// StatusRunning means that a turn has run. The instance usually waits for an activity, a timer or an event.
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
	// StatusBlocked means that the code cannot continue in the current build. Status.Failure contains the reason. The
	// instance continues when a build is deployed whose code can process the history.
	StatusBlocked = provider.StatusBlocked
	// StatusPaused means that the instance is paused. Status.Paused has the requester. Inputs are stored until Resume.
	StatusPaused = provider.StatusPaused
	// StatusDeleting means that the instance has ended and is being purged. It has no result.
	StatusDeleting = provider.StatusDeleting
)

// Status is the state of an instance. Its JSON is the same as in the HTTP API.
type Status struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	// ExecutionNumber is the number of the current execution, from 1. Continue-as-new starts the next execution.
	ExecutionNumber int64  `json:"executionNumber"`
	Orchestration   string `json:"orchestration"`
	// Version is the orchestration's version. It is empty before the first turn if none was requested.
	Version   string        `json:"version"`
	Status    RuntimeStatus `json:"status"`
	CreatedAt time.Time     `json:"createdAt"`
	// UpdatedAt is the time of the last change of Status or CustomStatus.
	UpdatedAt time.Time `json:"updatedAt"`
	// StartAt is the earliest time of the first turn if the instance was started with a delay. Otherwise it is zero.
	StartAt time.Time `json:"startAt,omitzero"`
	// Parent is the parent that waits for the instance, or nil.
	Parent *history.Parent `json:"parent,omitempty"`
	// StartedBy is the caller that started the instance, usually an IAM identity. TerminatedBy is the caller that
	// terminated the instance. Both are empty if unknown, and List does not set them.
	StartedBy    string            `json:"startedBy,omitempty"`
	TerminatedBy string            `json:"terminatedBy,omitempty"`
	Tags         map[string]string `json:"tags"`
	// CustomStatus is the custom status as JSON. It is nil if the orchestration has not set a custom status.
	CustomStatus json.RawMessage `json:"customStatus"`

	// Output is the result of a completed orchestration. Failure is the reason if an instance failed, was cancelled or
	// terminated, or is blocked. List sets neither field.
	Output  json.RawMessage  `json:"output,omitempty"`
	Failure *history.Failure `json:"failure,omitempty"`
	// EncodedOutput and EncodedCustomStatus describe an output and a custom status that this client cannot decode (see
	// WithCodec). Otherwise they are nil.
	EncodedOutput       *EncodedPayload `json:"outputSealed,omitempty"`
	EncodedCustomStatus *EncodedPayload `json:"customStatusSealed,omitempty"`
	// Paused holds the requester, reason and time of a pause. It is nil if the instance is not paused. List sets it
	// only if ListQuery.Status is StatusPaused.
	Paused *history.Pause `json:"paused,omitempty"`
	// Notes are the newest 20 notes (see Annotate), oldest first. List does not set them.
	Notes []Note `json:"notes,omitempty"`
}

// Status returns the state of an instance, and its result if it has ended. The read is strongly consistent. Status
// returns ErrNotFound if the instance does not exist. Use Pending to list the open tasks of the instance.
func (c *Client) Status(ctx context.Context, instanceID string) (Status, error) {
	s, err := c.ops.Status(ctx, instanceID)
	if err != nil {
		return Status{}, fmt.Errorf("client: status: %w", err)
	}
	return s, nil
}
