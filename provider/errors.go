package provider

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. The errors that carry them name the instance or item.
var (
	// ErrNotFound: there is no such instance, or execution.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: another start uses the instance id; its instance runs or is over. An AlreadyExistsError names it.
	ErrAlreadyExists = errors.New("instance id is in use")
	// ErrPurged: this very start has been made before, and the instance that it began was deleted, or is being deleted. It is an ErrAlreadyExists.
	ErrPurged = fmt.Errorf("this start has been made before, and what it began is purged: %w", ErrAlreadyExists)
	// ErrAlreadyStarted: this very start, by its idempotency key, has been made before. Its instance is what it asks for.
	ErrAlreadyStarted = errors.New("this start has been made before")
	// ErrNotTerminal: the instance is not over, and can only be deleted by force.
	ErrNotTerminal = errors.New("the instance is not over")
	// ErrTerminal: the instance is over.
	ErrTerminal = errors.New("the instance is over")
	// ErrUnknownOrchestration: no deployed build knows an orchestration of that name (and version).
	ErrUnknownOrchestration = errors.New("no deployed build knows this orchestration")
	// ErrConflict: the turn was run on a view of the history that is not the head (R7). Read again, strongly
	// consistent.
	ErrConflict = errors.New("the history has moved on")
	// ErrLockLost: the lock is over, and another holder may have what it protected. Nothing was written or sent.
	ErrLockLost = errors.New("the lock is over")
	// ErrLockLimit: the lock cannot be extended that far, because the queue limits how long it locks a message. The
	// lock ends when it would have ended anyway.
	ErrLockLimit = errors.New("the queue does not lock a message for so long")
	// ErrToken: this hub has not issued the token to a work item, or its key is no longer one of the hub's.
	ErrToken = errors.New("the token is not one of this hub")
	// ErrTooLarge: the turn's events do not fit one commit. Nothing was written, and the same turn will never fit.
	ErrTooLarge = errors.New("the turn is too large to be committed")
	// ErrUnsent: the turn is committed, and what it caused is not all sent. Its messages are not acknowledged, and lead back to it (R4).
	ErrUnsent = errors.New("the turn is committed, and not all is sent that it caused")
	// ErrBusy: the hub is at work, and what was asked for needs it at rest. Nothing was changed.
	ErrBusy = errors.New("the hub is not at rest")
	// ErrCorrupt: an item of the history cannot be read; the error names it.
	ErrCorrupt = errors.New("history cannot be read")
)

// Error is a failed operation of a provider.
type Error struct {
	Op         string // as the service names it: "DynamoDB.PutItem"
	InstanceID string
	// Retryable: the same call may succeed later (it was throttled or timed out). Otherwise it will not.
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

// UnknownKindError reports an inbox message of a kind that this release does not know: it comes from a later release
// that is being deployed beside this one, or from a foreign sender.
type UnknownKindError struct{ Kind MessageKind }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("kind %q is not one that this release knows", string(e.Kind))
}

// FieldError reports bad input: the field, and what is wrong with it.
type FieldError struct {
	Field, Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }
