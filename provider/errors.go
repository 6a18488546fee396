package provider

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. The errors that carry them name the instance or item.
var (
	// ErrNotFound: no such instance, or execution.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: the instance id is in use, running or over, by another start.
	ErrAlreadyExists = errors.New("instance id is in use")
	// ErrNotTerminal: the instance is not over, so that it is deleted by force alone.
	ErrNotTerminal = errors.New("the instance is not over")
	// ErrTerminal: the instance is over.
	ErrTerminal = errors.New("the instance is over")
	// ErrUnknownOrchestration: no deployed build knows an orchestration of that name (and version).
	ErrUnknownOrchestration = errors.New("no deployed build knows this orchestration")
	// ErrConflict: the turn was run on a view of the history that is not the head (R7). Read again, strongly consistent.
	ErrConflict = errors.New("the history has moved on")
	// ErrLockLost: the lock is over, and somebody else may hold what it was for. Nothing was written or sent.
	ErrLockLost = errors.New("the lock is over")
	// ErrTooLarge: the turn's events do not fit one commit. Nothing was written; the same turn will never fit.
	ErrTooLarge = errors.New("the turn is too large to be committed")
	// ErrCorrupt: an item of the history cannot be read; the error names it.
	ErrCorrupt = errors.New("history cannot be read")
)

// Error is a failed operation of a provider.
type Error struct {
	Op         string // as the service names it: "DynamoDB.PutItem"
	InstanceID string
	// Retryable: the same call may succeed later (throttled, timed out). Otherwise it will not.
	Retryable bool
	Err       error
}

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

func (e *Error) Unwrap() error { return e.Err }

// UnknownKindError is an inbox message of a kind that this release does not know: of a later one that is being deployed
// beside it, or of nobody's.
type UnknownKindError struct{ Kind MessageKind }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("kind %q is not one that this release knows", string(e.Kind))
}

// FieldError is bad input: the field, and what is wrong with it.
type FieldError struct {
	Field, Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }
