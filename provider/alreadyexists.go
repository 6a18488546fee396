package provider

import (
	"fmt"
	"time"
)

// AlreadyExistsError describes the instance that uses the ID of a start. It wraps ErrAlreadyExists or ErrPurged.
type AlreadyExistsError struct {
	// InstanceID is the ID of the start.
	InstanceID string
	// Orchestration, Status and CreatedAt describe the instance that uses the ID, at the time of the error. They are
	// empty if it has been purged.
	Orchestration string
	Status        RuntimeStatus
	CreatedAt     time.Time
	// Reason is ErrAlreadyExists or ErrPurged.
	Reason error
}

// NewAlreadyExistsError returns the error of a start whose ID is used by in. If the instance cannot be read, in is the
// zero value.
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

// Holder describes the instance that uses the ID. It is empty if there is none.
func (e *AlreadyExistsError) Holder() string {
	if e.Orchestration == "" {
		return ""
	}
	return fmt.Sprintf("orchestration %q, %s, started at %s", e.Orchestration, e.Status, e.CreatedAt.UTC().Format(time.RFC3339))
}

// Unwrap returns Reason.
func (e *AlreadyExistsError) Unwrap() error { return e.Reason }
