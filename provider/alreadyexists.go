package provider

import (
	"fmt"
	"time"
)

// AlreadyExistsError is an ErrAlreadyExists or ErrPurged that says which instance has the id of a start.
type AlreadyExistsError struct {
	InstanceID string
	// Orchestration, Status and CreatedAt are of the instance that has the id, as it was when the start was refused.
	// They are empty if there is no instance any more: the id of one that was purged takes no second start with the same
	// idempotency key.
	Orchestration string
	Status        RuntimeStatus
	CreatedAt     time.Time
	// Reason is ErrAlreadyExists or ErrPurged.
	Reason error
}

// NewAlreadyExistsError returns the error of a start whose id in has. A zero instance is one that cannot be read.
func NewAlreadyExistsError(instanceID string, in *Instance, reason error) *AlreadyExistsError {
	return &AlreadyExistsError{
		InstanceID: instanceID, Orchestration: in.Name, Status: in.Status, CreatedAt: in.CreatedAt, Reason: reason,
	}
}

// Error implements error.
func (e *AlreadyExistsError) Error() string {
	if e.Orchestration == "" {
		return fmt.Sprintf("instance %q: %v", e.InstanceID, e.Reason)
	}
	return fmt.Sprintf("instance %q: %v: %s", e.InstanceID, e.Reason, e.Holder())
}

// Holder describes the instance that has the id; it is empty if there is none.
func (e *AlreadyExistsError) Holder() string {
	if e.Orchestration == "" {
		return ""
	}
	return fmt.Sprintf("orchestration %q, %s, started at %s", e.Orchestration, e.Status, e.CreatedAt.UTC().Format(time.RFC3339))
}

// Unwrap returns the reason.
func (e *AlreadyExistsError) Unwrap() error { return e.Reason }
