package provider

import (
	"errors"
	"fmt"
	"time"
)

// Sentinel errors, for errors.Is. The errors that wrap them name the instance or item.
var (
	// ErrNotFound is returned if the instance, execution or item does not exist.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists is returned if another start uses the instance ID. The instance may be running or may have
	// ended. An AlreadyExistsError describes the instance.
	ErrAlreadyExists = errors.New("instance ID is in use")
	// ErrPurged is returned if the same start was made before, and its instance was deleted or is being deleted. It
	// wraps ErrAlreadyExists.
	ErrPurged = fmt.Errorf("instance of this start was purged: %w", ErrAlreadyExists)
	// ErrAlreadyStarted is returned if a start with the same idempotency key was made before. The instance exists.
	ErrAlreadyStarted = errors.New("already started with this idempotency key")
	// ErrNotEnded is returned if the instance has not ended, and can therefore be deleted only with force.
	ErrNotEnded = errors.New("instance has not ended")
	// ErrEnded is returned if the instance has ended.
	ErrEnded = errors.New("instance has ended")
	// ErrUnknownOrchestration is returned if no deployed build registers the orchestration in the requested version.
	ErrUnknownOrchestration = errors.New("orchestration is not registered in any deployed build")
	// ErrConflict is returned if another write was first, such as the commit of another turn (R7). Read the state again
	// with strong consistency, and repeat the operation.
	ErrConflict = errors.New("conflict with another write")
	// ErrLockLost is returned if the lock has expired, and another process may hold the record. Nothing was written or
	// sent.
	ErrLockLost = errors.New("lock expired")
	// ErrLockLimit is returned if the requested lock exceeds the limit of the queue. The call does not change the
	// expiry of the lock.
	ErrLockLimit = errors.New("lock exceeds the limit of the queue")
	// ErrInvalidToken is returned if this hub did not issue the token, or the hub's signing key has been deleted.
	ErrInvalidToken = errors.New("token was not issued by this hub")
	// ErrTooLarge is returned if the turn's events do not fit one commit. Nothing was written. Do not repeat the same
	// turn.
	ErrTooLarge = errors.New("turn is too large to commit")
	// ErrDispatchIncomplete is returned if the turn was committed, but not all of its outputs were sent. The messages
	// of the turn are redelivered, and a redispatch sends the remaining outputs (R4).
	ErrDispatchIncomplete = errors.New("turn is committed, but not all of its outputs were sent")
	// ErrBusy is returned if the hub is processing messages, and the operation requires an idle hub. Nothing was
	// changed.
	ErrBusy = errors.New("hub is not idle")
	// ErrCorrupt is returned if an item of the history cannot be read. The error names the item.
	ErrCorrupt = errors.New("history cannot be read")
)

// Error reports a failed operation of a provider.
type Error struct {
	// Op is the operation, such as "DynamoDB.PutItem".
	Op string
	// InstanceID is the instance of the operation, or empty.
	InstanceID string
	// Retryable is true if the same call may succeed later, for example because it was throttled or timed out.
	Retryable bool
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	how := "permanent"
	if e.Retryable {
		how = "retryable"
	}
	if e.InstanceID == "" {
		return fmt.Sprintf("%s (%s): %v", e.Op, how, e.Err)
	}
	return fmt.Sprintf("instance %q: %s (%s): %v", e.InstanceID, e.Op, how, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnknownKindError is returned for an inbox message of a kind that this release does not support. A later release may
// have sent it during a deployment.
type UnknownKindError struct {
	// Kind is the kind of the message.
	Kind MessageKind
}

// Error implements error.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("message kind %q is not supported by this release", string(e.Kind))
}

// FieldError is returned for invalid input.
type FieldError struct {
	// Field is the name of the field.
	Field string
	// Problem is a predicate that describes the problem, such as "must be at least 1".
	Problem string
}

// Error returns the field and the problem.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// AlreadyExistsError describes the instance that uses the ID of a start. It wraps ErrAlreadyExists or ErrPurged.
type AlreadyExistsError struct {
	// InstanceID is the ID of the start.
	InstanceID string
	// Orchestration, Status and CreatedAt describe the instance that uses the ID, at the time of the error. They are
	// empty if the instance has been purged.
	Orchestration string
	Status        RuntimeStatus
	CreatedAt     time.Time
	// Reason is ErrAlreadyExists or ErrPurged.
	Reason error
}

// NewAlreadyExistsError returns the error of a start whose ID the instance in uses. If the instance cannot be read, in
// is the zero value.
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

// Holder returns a description of the instance that uses the ID, or an empty string if the instance is not known.
func (e *AlreadyExistsError) Holder() string {
	if e.Orchestration == "" {
		return ""
	}
	return fmt.Sprintf("orchestration %q, %s, started at %s", e.Orchestration, e.Status,
		e.CreatedAt.UTC().Format(time.RFC3339))
}

// Unwrap returns Reason.
func (e *AlreadyExistsError) Unwrap() error { return e.Reason }

// ForeignTokenError is returned for a completion token of another hub. It wraps ErrInvalidToken.
type ForeignTokenError struct {
	// Hub is the name of the hub in the token. It is not verified. Own is the name of the hub that received the token.
	Hub, Own string
}

// Error implements error.
func (e *ForeignTokenError) Error() string {
	return fmt.Sprintf("token belongs to hub %q, not to %q", Excerpt(e.Hub), e.Own)
}

// Unwrap returns ErrInvalidToken.
func (e *ForeignTokenError) Unwrap() error { return ErrInvalidToken }
