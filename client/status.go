package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// RuntimeStatus is where an instance is in its life. Terminal reports whether it is over.
type RuntimeStatus = provider.RuntimeStatus

// The statuses of an instance.
const (
	StatusPending   = provider.StatusPending   // started, and no turn has run
	StatusRunning   = provider.StatusRunning   // at least one turn has run; usually it waits for something
	StatusCompleted = provider.StatusCompleted // ended with an output
	StatusFailed    = provider.StatusFailed    // ended with an error

	StatusCancelling = provider.StatusCancelling // asked to end, and its code is unwinding
	StatusCancelled  = provider.StatusCancelled  // ended because it was asked to
	StatusTerminated = provider.StatusTerminated // ended from outside, without running its code
	StatusBlocked    = provider.StatusBlocked    // its code cannot go on: Failure has the reason; it waits for a build whose code can
	StatusPaused     = provider.StatusPaused     // somebody has paused it: Paused says who; what arrives is kept until it is resumed
	StatusDeleting   = provider.StatusDeleting   // over, and being purged: the result is gone
)

// Status is the state of an instance. Its JSON is that of the HTTP API.
type Status struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	// ExecutionNumber counts the instance's executions, from 1: continue-as-new makes the next.
	ExecutionNumber int64         `json:"executionNumber"`
	Orchestration   string        `json:"orchestration"`
	Version         string        `json:"version"` // empty until the first turn when none was asked for
	Status          RuntimeStatus `json:"status"`
	CreatedAt       time.Time     `json:"createdAt"`
	UpdatedAt       time.Time     `json:"updatedAt"` // of the last change of Status or CustomStatus
	// StartAt is when the first turn may run, for an instance that was started with a delay; otherwise zero.
	StartAt time.Time `json:"startAt,omitzero"`
	// Parent waits for the instance; nil when no parent does.
	Parent *history.Parent `json:"parent,omitempty"`
	// StartedBy is who started it, an IAM identity as a rule, and TerminatedBy is who ended one that is Terminated.
	// Empty where that is not known; List leaves both empty.
	StartedBy    string            `json:"startedBy,omitempty"`
	TerminatedBy string            `json:"terminatedBy,omitempty"`
	Tags         map[string]string `json:"tags"`
	CustomStatus json.RawMessage   `json:"customStatus"` // nil when the orchestration set none

	// Output is what a completed orchestration returned. Failure is why an instance failed, was cancelled or was
	// terminated, or why a blocked one cannot go on. List leaves both nil.
	Output  json.RawMessage  `json:"output,omitempty"`
	Failure *history.Failure `json:"failure,omitempty"`
	// OutputSealed and CustomStatusSealed say what the output and the custom status are where this client cannot show them (WithCodec); else nil.
	OutputSealed       *SealedPayload `json:"outputSealed,omitempty"`
	CustomStatusSealed *SealedPayload `json:"customStatusSealed,omitempty"`
	// Paused is who has paused it, why and when; nil where it is not paused. List leaves it nil, but where the query asks
	// for instances that are Paused.
	Paused *history.Pause `json:"paused,omitempty"`
}

// Status reads the state of an instance, strongly consistent, and its result when it is over. It returns ErrNotFound
// when there is none. Pending, which reads more, returns what the instance waits for.
func (c *Client) Status(ctx context.Context, instanceID string) (Status, error) {
	in, err := c.readInstance(ctx, instanceID)
	if err != nil {
		return Status{}, fmt.Errorf("client: status: %w", err)
	}
	s, err := c.withResult(ctx, in)
	if err != nil {
		return Status{}, fmt.Errorf("client: status: %w", err)
	}
	return s, nil
}

func (c *Client) readInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if err := checkInstanceID(instanceID); err != nil {
		return provider.Instance{}, err
	}
	return c.hub.ReadInstance(ctx, instanceID)
}

// withResult adds how the instance ended, if it has: only its history has that.
func (c *Client) withResult(ctx context.Context, in provider.Instance) (Status, error) {
	s := c.statusOf(ctx, &in)
	if s.Failure = in.Diagnosis; !s.Status.Terminal() || s.Status == StatusDeleting {
		return s, nil
	}

	end, err := c.hub.ReadEnd(ctx, in.ExecutionID)
	if err != nil {
		return s, fmt.Errorf("instance %q: result: %w", in.InstanceID, err)
	}
	about := perdure.PayloadInfo{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Kind: perdure.PayloadErrorDetails, Name: in.Name}
	if s.Failure, err = c.openFailure(ctx, about, failureOf(&end)); err != nil {
		return s, fmt.Errorf("result: %w", err)
	}
	if s.Status == StatusTerminated {
		s.TerminatedBy = end.RequestedBy
	}

	if end.Output == nil {
		return s, nil
	}
	about.Kind = perdure.PayloadOrchestrationOutput
	if s.Output, s.OutputSealed, err = c.unseal(ctx, about, end.Output); err != nil {
		return s, fmt.Errorf("result: %w", err)
	}
	return s, nil
}

// failureOf returns why an instance that ended with this event has no output; nil when it has one.
func failureOf(end *history.Event) *history.Failure {
	switch end.Kind {
	case history.OrchestrationCancelled:
		return &history.Failure{Type: history.TypeCancelled, Message: end.Message, Reason: end.Reason}
	case history.OrchestrationTerminated:
		return &history.Failure{Type: history.TypeTerminated, Message: end.Message}
	default:
		return end.Error
	}
}

func statusOf(in *provider.Instance) Status {
	s := Status{
		InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ExecutionNumber: in.ExecutionNumber, Orchestration: in.Name, Version: in.Version, Status: in.Status,
		CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt, StartAt: in.StartAt, Parent: in.Parent, Tags: in.Tags, CustomStatus: in.CustomStatus,
		StartedBy: in.RequestedBy, Paused: in.Paused,
	}
	if s.Tags == nil {
		s.Tags = map[string]string{} // in JSON {}, not null
	}
	return s
}
